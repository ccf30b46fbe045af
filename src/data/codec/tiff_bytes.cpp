#include "tiff_bytes.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>

#include <dtrain/base/error.hpp>

namespace dtrain::data {
namespace {

using Bytes = std::vector<std::uint8_t>;

[[noreturn]] void fail(const char* what) { throw DataError(fmt::format("TIFF: {}", what)); }

std::uint8_t byte_at(ByteView bytes, std::size_t i) { return static_cast<std::uint8_t>(bytes[i]); }

Bytes inflate(ByteView stored, std::uint64_t size) {
  Bytes out(size);
  uLongf written = size;
  const int result = uncompress(out.data(), &written, reinterpret_cast<const Bytef*>(stored.data()), stored.size());
  if ((result != Z_OK && result != Z_BUF_ERROR) || written != size) fail("a deflated part is damaged or cut short");
  return out;
}

// A count n from 0 to 127 and n + 1 bytes, or -n from 1 to 127 and a byte that stands n + 1 times.
Bytes unpack_bits(ByteView stored, std::uint64_t size) {
  Bytes out;
  std::size_t at = 0;
  while (out.size() < size) {
    if (at >= stored.size()) fail("a packed part is cut short");
    const auto count = static_cast<std::int8_t>(byte_at(stored, at++));
    if (count == -128) continue;
    const auto bytes = static_cast<std::size_t>(count < 0 ? 1 - count : count + 1);
    if (at + (count < 0 ? 1 : bytes) > stored.size()) fail("a packed part is cut short");
    for (std::size_t i = 0; i < bytes; ++i) out.push_back(byte_at(stored, count < 0 ? at : at + i));
    at += count < 0 ? 1 : bytes;
  }
  out.resize(size);
  return out;
}

// LZW with codes of 9 to 12 bits, the high bit first, which grow one code early.
class Lzw {
 public:
  Lzw(ByteView stored, std::uint64_t size) : stored_(stored), size_(size) {}

  Bytes unpack() {
    Bytes out;
    int before = -1;
    while (out.size() < size_) {
      const int code = next_code();
      if (code == kEnd) break;
      if (code == kClear) {
        entries_.clear();
        before = -1;
        continue;
      }
      const int known = kFirst + static_cast<int>(entries_.size());
      if (code > known || (code == known && before < 0)) fail("an LZW part is damaged");
      const std::size_t begin = out.size();
      append(code == known ? before : code, out);
      if (code == known) out.push_back(out[begin]);
      if (before >= 0 && known < kMost) entries_.push_back({before, out[begin]});
      before = code;
    }
    if (out.size() < size_) fail("an LZW part is cut short");
    out.resize(size_);
    return out;
  }

 private:
  static constexpr int kClear = 256, kEnd = 257, kFirst = 258, kMost = 4096;
  struct Entry {
    int before;  // the string that this byte follows
    std::uint8_t last;
  };

  int next_code() {
    const int known = kFirst + static_cast<int>(entries_.size());
    const unsigned width = known >= 2047 ? 12 : known >= 1023 ? 11 : known >= 511 ? 10 : 9;
    unsigned code = 0;
    for (unsigned i = 0; i < width; ++i, ++bit_) {
      if (bit_ / 8 >= stored_.size()) return kEnd;
      code = code << 1 | (byte_at(stored_, bit_ / 8) >> (7 - bit_ % 8) & 1u);
    }
    return static_cast<int>(code);
  }

  void append(int code, Bytes& out) {
    const std::size_t begin = out.size();
    while (code >= kFirst) {
      const Entry& entry = entries_.at(static_cast<std::size_t>(code - kFirst));
      out.push_back(entry.last);
      code = entry.before;
    }
    out.push_back(static_cast<std::uint8_t>(code));
    std::reverse(out.begin() + static_cast<std::ptrdiff_t>(begin), out.end());
  }

  ByteView stored_;
  std::uint64_t size_;
  std::size_t bit_ = 0;
  std::vector<Entry> entries_;
};

}  // namespace

Bytes unpack_tiff(ByteView stored, std::uint64_t compression, std::uint64_t size) {
  constexpr std::uint64_t kMostFromByte = 1u << 12;  // LZW repeats a string of 3,838 bytes in 12 bits, deflate less
  if (size > stored.size() * kMostFromByte) fail("a part is cut short");
  switch (compression) {
    case 1:
      if (stored.size() < size) fail("the pixels are cut short");
      return {reinterpret_cast<const std::uint8_t*>(stored.data()),
              reinterpret_cast<const std::uint8_t*>(stored.data()) + size};
    case 5:
      return Lzw(stored, size).unpack();
    case 8:
    case 32946:
      return inflate(stored, size);
    case 32773:
      return unpack_bits(stored, size);
    default:
      throw DataError(fmt::format("TIFF: is compressed in a way that dtrain does not read (kind {})", compression),
                      "save it as PNG, or as TIFF with LZW or deflate");
  }
}

void add_up_rows(Bytes& bytes, std::uint64_t row_bytes, std::uint64_t samples, std::uint64_t bits, bool big_endian) {
  const std::uint64_t size = bits / 8, step = samples * size, high = big_endian ? 0 : 1;
  for (std::uint64_t row = 0; row + row_bytes <= bytes.size(); row += row_bytes) {
    for (std::uint64_t i = row + step; i + size <= row + row_bytes; i += size) {
      if (size == 1) {
        bytes[i] = static_cast<std::uint8_t>(bytes[i] + bytes[i - step]);
        continue;
      }
      const std::uint64_t low = 1 - high;
      const auto value = [&](std::uint64_t at) {
        return static_cast<unsigned>(bytes[at + high] << 8 | bytes[at + low]);
      };
      const unsigned sum = value(i) + value(i - step);
      bytes[i + high] = static_cast<std::uint8_t>(sum >> 8);
      bytes[i + low] = static_cast<std::uint8_t>(sum);
    }
  }
}

}  // namespace dtrain::data
