#include "idx_array.hpp"

#include <fmt/format.h>

#include <algorithm>

#include <dtrain/base/error.hpp>

namespace dtrain::data {
namespace {

constexpr std::size_t kMostDimensions = 4;

std::uint64_t big_endian_at(ByteView bytes, std::size_t at) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<std::uint64_t>(bytes[at + i]);
  return value;
}

}  // namespace

std::size_t idx_dimensions(ByteView file) {
  if (file.size() < 4) return 0;
  const std::uint64_t head = big_endian_at(file, 0);
  return head > 0x800 && head <= 0x800 + kMostDimensions ? head - 0x800 : 0;
}

IdxArray parse_idx(SourceBytes file, std::size_t dimensions) {
  const std::size_t header = 4 + 4 * dimensions;
  const ByteView bytes = file.bytes;
  if (bytes.size() < header || idx_dimensions(bytes) != dimensions) {
    throw DataError(fmt::format("{}: is no IDX file of bytes with {} dimensions", file.name, dimensions),
                    "is it the right file?");
  }
  IdxArray array;
  std::uint64_t expected = 1;
  for (std::size_t i = 0; i < dimensions; ++i) {
    array.shape.push_back(big_endian_at(bytes, 4 + 4 * i));
    // Bounded in steps, for the product of damaged dimensions can overflow.
    expected = std::min<std::uint64_t>(expected * array.shape.back(), 1ull << 32);
  }
  array.values = bytes.subspan(header);
  if (expected == 0 || array.values.size() != expected) {
    throw DataError(
        fmt::format("{}: holds {} bytes behind its header, which says {}", file.name, array.values.size(), expected),
        "it was cut short or is damaged: copy or download it again");
  }
  array.file = std::move(file);
  return array;
}

SourceBytes open_idx_file(const Path& file) {
  const SourceBytes bytes = map_source(file);
  return file.extension() == ".gz" ? gunzip(bytes) : bytes;
}

bool is_idx(const Path& file) {
  if (file.extension() == ".gz") return file.stem().string().find("ubyte") != std::string::npos;
  return idx_dimensions(map_source(file).bytes) != 0;
}

}  // namespace dtrain::data
