#include "packing.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include <dtrain/base/error.hpp>

namespace dtrain::comm {
namespace {

constexpr std::int64_t kMasked = 64;  // floats of one word of a mask

int bits_of_count(int level) { return level + 2; }
std::int64_t in_whole(std::int64_t parts, std::int64_t size) { return (parts + size - 1) / size; }
std::int64_t words_of(std::int64_t floats) { return in_whole(floats, kMasked); }
// By its bits: a processor that takes tiny numbers for 0 gives no other answer.
bool is_zero(float value) { return std::bit_cast<std::uint32_t>(value) == 0; }

std::vector<std::byte> pack_counts(int level, const float* values, std::int64_t size) {
  const int bits = bits_of_count(level);
  const auto zero = std::int64_t{1} << level;
  std::vector<std::byte> bytes;
  bytes.reserve(packed_sizes(Packing::counts, level, size).most);
  std::uint64_t held = 0;
  int held_bits = 0;
  for (std::int64_t i = 0; i < size; ++i) {
    held |= static_cast<std::uint64_t>(static_cast<std::int64_t>(values[i]) + zero) << held_bits;
    for (held_bits += bits; held_bits >= 8; held_bits -= 8, held >>= 8) bytes.push_back(static_cast<std::byte>(held));
  }
  if (held_bits > 0) bytes.push_back(static_cast<std::byte>(held));
  return bytes;
}

bool unpack_counts(int level, std::span<const std::byte> bytes, float* values, std::int64_t size) {
  const int bits = bits_of_count(level);
  const auto zero = std::int64_t{1} << level;
  const std::uint64_t mask = (std::uint64_t{1} << bits) - 1;
  std::uint64_t held = 0;
  int held_bits = 0;
  auto next = bytes.begin();
  for (std::int64_t i = 0; i < size; ++i) {
    for (; held_bits < bits; held_bits += 8) held |= static_cast<std::uint64_t>(*next++) << held_bits;
    const auto count = static_cast<std::int64_t>(held & mask) - zero;
    if (count > zero) return false;
    values[i] = static_cast<float>(count);
    held >>= bits;
    held_bits -= bits;
  }
  return held == 0;
}

// Of 64 floats, or of the last ones.
std::uint64_t mask_of(const float* values, std::int64_t size) {
  std::uint64_t mask = 0;
  for (std::int64_t i = 0; i < size; ++i) mask |= std::uint64_t{!is_zero(values[i])} << i;
  return mask;
}

std::vector<std::byte> pack_sparse(const float* values, std::int64_t size) {
  std::vector<std::uint64_t> masks;
  std::vector<float> others;
  std::vector<std::byte> bytes(static_cast<std::size_t>(in_whole(words_of(size), 8)));
  for (std::int64_t word = 0; word < words_of(size); ++word) {
    const float* const part = values + word * kMasked;
    const std::uint64_t mask = mask_of(part, std::min(kMasked, size - word * kMasked));
    if (mask == 0) continue;
    bytes[static_cast<std::size_t>(word / 8)] |= std::byte{1} << (word % 8);
    masks.push_back(mask);
    for (std::uint64_t left = mask; left != 0; left &= left - 1) others.push_back(part[std::countr_zero(left)]);
  }
  for (const auto part : {std::as_bytes(std::span(masks)), std::as_bytes(std::span(others))}) {
    bytes.insert(bytes.end(), part.begin(), part.end());
  }
  return bytes;
}

// Takes values from the front of bytes, as long as they last.
template <typename Value>
bool take(std::span<const std::byte>& bytes, Value& value) {
  if (bytes.size() < sizeof value) return false;
  std::memcpy(&value, bytes.data(), sizeof value);
  bytes = bytes.subspan(sizeof value);
  return true;
}

bool unpack_sparse(std::span<const std::byte> bytes, float* values, std::int64_t size) {
  const std::int64_t words = words_of(size);
  const std::span<const std::byte> used = bytes.first(static_cast<std::size_t>(in_whole(words, 8)));
  std::span<const std::byte> masks = bytes.subspan(used.size());
  std::int64_t count = 0;
  for (const std::byte each : used) count += std::popcount(static_cast<unsigned char>(each));
  if (count > words || masks.size() < static_cast<std::size_t>(count) * sizeof(std::uint64_t)) return false;
  std::span<const std::byte> others = masks.subspan(static_cast<std::size_t>(count) * sizeof(std::uint64_t));
  std::fill_n(values, size, 0.0f);
  for (std::int64_t word = 0; word < words; ++word) {
    if ((used[static_cast<std::size_t>(word / 8)] >> (word % 8) & std::byte{1}) == std::byte{0}) continue;
    std::uint64_t mask = 0;
    take(masks, mask);
    const std::int64_t room = std::min(kMasked, size - word * kMasked);
    if (mask == 0 || (room < kMasked && mask >> room != 0)) return false;
    for (; mask != 0; mask &= mask - 1) {
      float& value = values[word * kMasked + std::countr_zero(mask)];
      if (!take(others, value) || is_zero(value)) return false;
    }
    --count;
  }
  return count == 0 && others.empty();
}

}  // namespace

PackedSizes packed_sizes(Packing packing, int level, std::int64_t floats) {
  if (packing == Packing::counts) {
    const auto bytes = static_cast<std::uint64_t>(in_whole(floats * bits_of_count(level), 8));
    return {bytes, bytes};
  }
  const auto least = static_cast<std::uint64_t>(in_whole(words_of(floats), 8));
  return {least, least + static_cast<std::uint64_t>(words_of(floats)) * sizeof(std::uint64_t) +
                     static_cast<std::uint64_t>(floats) * sizeof(float)};
}

std::vector<std::byte> pack(Packing packing, int level, const float* values, std::int64_t size) {
  DTRAIN_CHECK(packing != Packing::none, "what is not packed travels as it is");
  return packing == Packing::counts ? pack_counts(level, values, size) : pack_sparse(values, size);
}

bool unpack(Packing packing, int level, std::span<const std::byte> bytes, float* values, std::int64_t size) {
  if (!packed_sizes(packing, level, size).has(bytes.size())) return false;
  return packing == Packing::counts ? unpack_counts(level, bytes, values, size) : unpack_sparse(bytes, values, size);
}

}  // namespace dtrain::comm
