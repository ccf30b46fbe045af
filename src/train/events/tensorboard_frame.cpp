#include "tensorboard_frame.hpp"

#include <bit>
#include <cstdint>

#include <dtrain/base/hash.hpp>

namespace dtrain::train {
namespace {

template <typename Bits>
std::string raw_bytes(Bits bits) {
  static_assert(std::endian::native == std::endian::little);
  return {reinterpret_cast<const char*>(&bits), sizeof(bits)};
}

// Masked so that the checksum of data that holds checksums stays a good one.
std::uint32_t masked_crc(std::string_view bytes) { return std::rotr(crc32c(bytes_of(bytes)), 15) + 0xa282ead8u; }

}  // namespace

std::string tensorboard_frame(std::string_view payload) {
  const std::string length = raw_bytes(std::uint64_t{payload.size()});
  std::string frame = length + raw_bytes(masked_crc(length));
  frame += payload;
  return frame + raw_bytes(masked_crc(payload));
}

}  // namespace dtrain::train
