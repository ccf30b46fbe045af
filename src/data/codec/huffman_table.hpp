// The Huffman codes of a JPEG as tables that decode a coefficient, or pass over several, with one look (ITU-T T.81,
// annexes C and F). A table is made for each picture, because many encoders fit the codes to the picture. Pure.
#pragma once

#include <array>
#include <cstdint>

namespace dtrain::data {

// As a DHT segment gives them; checked by libjpeg: no code is too long for its length.
struct HuffmanCodes {
  std::array<std::uint8_t, 17> counts{};    // [n]: number of codes of n bits, from 1 to 16
  std::array<std::uint8_t, 256> symbols{};  // by length, then by code
  bool operator==(const HuffmanCodes&) const = default;
};

enum class HuffmanUse { dc, ac };

// A code and the value behind it, packed so that the length can shift without being cut out (a shift by a register
// looks at six bits): that shift lies on the way from each coefficient to the next.
class HuffmanEntry {
 public:
  constexpr HuffmanEntry() = default;
  // The whole is within the look. advance: coefficients, this one included; kToTheEnd: none is left in the block.
  static constexpr HuffmanEntry whole(unsigned length, unsigned advance, int value) {
    return HuffmanEntry(static_cast<std::uint32_t>(static_cast<std::uint16_t>(value)) << 16 | advance << 8 | length);
  }
  // The look ends within the value.
  static constexpr HuffmanEntry code_alone(unsigned length, unsigned symbol) {
    return HuffmanEntry(symbol << 8 | kIncomplete | length);
  }

  constexpr bool is_whole() const { return (word_ & kIncomplete) == 0; }
  constexpr unsigned length() const { return word_ & 63; }  // in bits; 0: the code is longer than the look
  constexpr std::uint32_t shift() const { return word_; }   // length() in its lowest six bits
  constexpr int advance() const { return static_cast<int>(word_ >> 8 & 255); }
  constexpr unsigned symbol() const { return word_ >> 8 & 255; }
  constexpr std::int16_t value() const { return static_cast<std::int16_t>(word_ >> 16); }

  static constexpr int kToTheEnd = 128;

 private:
  static constexpr std::uint32_t kIncomplete = 128;
  constexpr explicit HuffmanEntry(std::uint32_t word) : word_(word) {}

  std::uint32_t word_ = kIncomplete;
};

// Several coefficients of a block that is passed over: as many as the look shows.
struct HuffmanLeap {
  std::uint8_t advance = kNone;  // plus HuffmanEntry::kToTheEnd if the block ends behind them
  std::uint8_t length = 0;       // in bits, at most kLook + 15
  static constexpr std::uint8_t kNone = 255;
};

class HuffmanTable {
 public:
  // Bits of a look. Eleven leave 3 % of the coefficients of photographs to the slow way and two tables in 32 KiB.
  static constexpr int kLook = 11;
  static constexpr unsigned kSixteenZeros = 0xF0;  // the only symbol without a value that does not end the block

  // Cheap if it was made of the same codes before.
  void make(const HuffmanCodes& codes, HuffmanUse use);
  // Call it before the first leap(). Not a part of make(), because leaps cost more than all else and whole pictures
  // need none.
  void make_leaps() {
    if (!has_leaps_) fill_leaps();
  }

  // By the next bits, the first one on top.
  HuffmanEntry entry(std::uint64_t bits) const { return entries_[bits >> (64 - kLook)]; }
  HuffmanLeap leap(std::uint64_t bits) const { return leaps_[bits >> (64 - kLook)]; }

  struct LongCode {
    unsigned length = 0, symbol = 0;  // length 0: there is no such code
  };
  LongCode long_code(std::uint64_t bits) const;  // the next code, which has more than kLook bits

 private:
  void fill_entries();
  void fill_entry(std::uint32_t code, unsigned length, unsigned symbol);
  void fill_leaps();
  HuffmanLeap leap_at(std::uint32_t look) const;

  HuffmanCodes codes_;
  HuffmanUse use_ = HuffmanUse::dc;
  bool made_ = false, has_leaps_ = false;
  std::array<HuffmanEntry, 1 << kLook> entries_;
  std::array<HuffmanLeap, 1 << kLook> leaps_;
  std::array<std::uint32_t, 17> limits_{};  // [n]: the first code above those of n bits, as 16 bits
  std::array<int, 17> offsets_{};           // [n]: from a code of n bits to its symbol
};

// The value of `size` bits on top of `bits`: those that begin with 0 are negative (T.81, figure F.12).
constexpr int signed_value(std::uint64_t bits, unsigned size) {
  if (size == 0) return 0;
  const int value = static_cast<int>(bits >> (64 - size));
  return value < 1 << (size - 1) ? value - (1 << size) + 1 : value;
}

}  // namespace dtrain::data
