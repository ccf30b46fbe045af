// Little-endian numbers at unaligned places.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>

#include <dtrain/base/files.hpp>

namespace dtrain::data {

static_assert(std::endian::native == std::endian::little, "the formats are little-endian, and so is this code");

template <typename T>
T load(ByteView bytes, std::uint64_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof(T));
  return value;
}

template <typename T>
void append(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(T));
}

}  // namespace dtrain::data
