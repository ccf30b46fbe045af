// The bits of a JPEG's scan, and the coefficients of one block in them (ITU-T T.81, F.2.2). The way from each
// coefficient to the next is a look into a table and a shift, eight cycles; everything else happens beside it.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "huffman_table.hpp"

namespace dtrain::data {

// Behind the bytes at `at` must lie kScanMargin more: a decoder looks at the end of what it read only now and then.
struct ScanBits {
  std::uint64_t bits = 0;  // the next one on top
  int count = 0;           // how many of them are there
  const std::uint8_t* at = nullptr;
  bool damaged = false;  // a code was met that the table does not have

  // 56 bits or more, enough for four whole entries, two leaps, or a code of 16 bits and its value.
  void refill() {
    std::uint64_t next;
    std::memcpy(&next, at, sizeof next);
    if constexpr (std::endian::native == std::endian::little) next = __builtin_bswap64(next);
    bits |= next >> count;
    at += (63 - count) >> 3;
    count |= 56;
  }
  void use(unsigned length) {
    bits <<= length;
    count -= static_cast<int>(length);
  }
  void use(HuffmanEntry entry) {
    bits <<= entry.shift() & 63;
    count -= static_cast<int>(entry.length());
  }
};

// 64 coefficients of 16 + 15 bits, 10 blocks, and a refill.
inline constexpr std::size_t kScanMargin = 10 * 64 * 31 / 8 + 64;

inline constexpr int kBlock = 64;

// From the zigzag order of a scan (T.81, figure A.6). A damaged scan may run past the block by up to 16 coefficients,
// which libjpeg writes to the last place.
inline constexpr std::array<std::uint8_t, kBlock + 16> kNatural = {
    0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,  12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13,
    6,  7,  14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51, 58, 59, 52, 45, 38, 31,
    39, 46, 53, 60, 61, 54, 47, 55, 62, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63};

// What the bits begin with, where one look does not show all of it.
inline unsigned read_symbol(const HuffmanTable& table, HuffmanEntry entry, ScanBits& scan) {
  if (entry.length() > 0) {
    scan.use(entry.length());
    return entry.symbol();
  }
  const HuffmanTable::LongCode code = table.long_code(scan.bits);
  if (code.length == 0) scan.damaged = true;
  scan.use(code.length);
  return code.symbol;
}

// The difference of a block's first coefficient to that of the block before. Needs a refill before it.
inline int read_difference(const HuffmanTable& table, ScanBits& scan) {
  const HuffmanEntry entry = table.entry(scan.bits);
  if (entry.is_whole()) {
    scan.use(entry);
    return entry.value();
  }
  const unsigned size = read_symbol(table, entry, scan);
  const int value = signed_value(scan.bits, size);
  scan.use(size);
  return value;
}

// The coefficient at `next` or behind it, where one look does not show all of it; returns the one to go on with, kBlock
// or more at the end. A block of nullptr is passed over. Needs a refill before it.
inline int read_slowly(const HuffmanTable& table, HuffmanEntry entry, ScanBits& scan, int next, std::int16_t* block) {
  const unsigned symbol = read_symbol(table, entry, scan), size = symbol & 15;
  if (size == 0 && symbol != HuffmanTable::kSixteenZeros) return kBlock;
  const auto place = static_cast<std::size_t>(next) + (symbol >> 4);
  if (block) block[kNatural[place]] = static_cast<std::int16_t>(signed_value(scan.bits, size));
  scan.use(size);
  return static_cast<int>(place) + 1;
}

// The other 63, which are 0 before, in their natural order: [8 y + x].
[[gnu::always_inline]] inline void read_block(const HuffmanTable& table, ScanBits& scan, std::int16_t* block) {
  for (int next = 1; next < kBlock;) {
    scan.refill();
    HuffmanEntry entry;
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      entry = table.entry(scan.bits);
      if (!entry.is_whole()) break;
      next += entry.advance();
      scan.use(entry);
      if (next >= kBlock) {
        if (next < HuffmanEntry::kToTheEnd) block[kBlock - 1] = entry.value();
        return;
      }
      block[kNatural[static_cast<std::size_t>(next - 1)]] = entry.value();
    }
    if (entry.is_whole()) continue;
    scan.refill();
    next = read_slowly(table, entry, scan, next, block);
  }
}

[[gnu::always_inline]] inline void pass_over_block(const HuffmanTable& table, ScanBits& scan) {
  for (int next = 1; next < kBlock;) {
    scan.refill();
    int landing = next;
#pragma GCC unroll 2
    for (int i = 0; i < 2; ++i) {
      const HuffmanLeap leap = table.leap(scan.bits);
      landing = next + leap.advance;
      const bool ends = landing > HuffmanEntry::kToTheEnd && landing < HuffmanEntry::kToTheEnd + kBlock;
      if (landing > kBlock && !ends) break;
      scan.use(leap.length);
      if (landing >= kBlock) return;
      next = landing;
    }
    if (landing == next) continue;
    // The leap would end in the next block.
    scan.refill();
    const HuffmanEntry entry = table.entry(scan.bits);
    if (entry.is_whole()) {
      scan.use(entry);
      next += entry.advance();
    } else {
      next = read_slowly(table, entry, scan, next, nullptr);
    }
  }
}

}  // namespace dtrain::data
