#include "huffman_table.hpp"

namespace dtrain::data {

void HuffmanTable::make(const HuffmanCodes& codes, HuffmanUse use) {
  if (made_ && use == use_ && codes == codes_) return;
  codes_ = codes;
  use_ = use;
  made_ = true;
  has_leaps_ = false;
  fill_entries();
}

void HuffmanTable::fill_entries() {
  entries_.fill({});
  std::uint32_t code = 0;
  int index = 0;
  for (unsigned length = 1; length <= 16; ++length) {
    offsets_[length] = index - static_cast<int>(code);
    for (int i = 0; i < codes_.counts[length]; ++i, ++index, ++code) {
      if (length <= kLook) fill_entry(code, length, codes_.symbols[static_cast<std::size_t>(index)]);
    }
    limits_[length] = code << (16 - length);
    code <<= 1;
  }
}

// All looks that begin with the code.
void HuffmanTable::fill_entry(std::uint32_t code, unsigned length, unsigned symbol) {
  const bool is_ac = use_ == HuffmanUse::ac;
  const unsigned size = is_ac ? symbol & 15 : symbol, rest = kLook - length;
  const bool ends = is_ac && size == 0 && symbol != kSixteenZeros;
  const unsigned advance = !is_ac ? 0 : (ends ? HuffmanEntry::kToTheEnd : (symbol >> 4) + 1);
  for (std::uint32_t behind = 0; behind < 1u << rest; ++behind) {
    HuffmanEntry& entry = entries_[(code << rest) + behind];
    if (size > rest) {
      entry = HuffmanEntry::code_alone(length, symbol);
    } else {
      const std::uint64_t bits = rest == 0 ? 0 : static_cast<std::uint64_t>(behind) << (64 - rest);
      entry = HuffmanEntry::whole(length + size, advance, signed_value(bits, size));
    }
  }
}

void HuffmanTable::fill_leaps() {
  for (std::uint32_t look = 0; look < leaps_.size(); ++look) leaps_[look] = leap_at(look);
  has_leaps_ = true;
}

HuffmanLeap HuffmanTable::leap_at(std::uint32_t look) const {
  constexpr int kLongest = 63;
  int advance = 0;
  unsigned length = 0;
  while (length < kLook) {
    const HuffmanEntry next = entry(static_cast<std::uint64_t>(look) << (64 - kLook) << length);
    if (next.length() == 0 || length + next.length() > kLook) break;
    const bool ends = next.is_whole() && next.advance() == HuffmanEntry::kToTheEnd;
    const int more = next.is_whole() ? next.advance() : static_cast<int>(next.symbol() >> 4) + 1;
    if (!ends && advance + more > kLongest) break;
    advance += more;
    length += next.length();
    if (!next.is_whole()) length += next.symbol() & 15;
    if (ends || !next.is_whole()) break;
  }
  if (length == 0) return {};
  return {static_cast<std::uint8_t>(advance), static_cast<std::uint8_t>(length)};
}

HuffmanTable::LongCode HuffmanTable::long_code(std::uint64_t bits) const {
  const auto code = static_cast<std::uint32_t>(bits >> 48);
  for (unsigned length = kLook + 1; length <= 16; ++length) {
    if (code >= limits_[length]) continue;
    const int index = static_cast<int>(code >> (16 - length)) + offsets_[length];
    return {length, codes_.symbols[static_cast<std::size_t>(index)]};
  }
  return {};
}

}  // namespace dtrain::data
