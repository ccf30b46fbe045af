#include "npy.hpp"

#include <fmt/format.h>

#include <string>

namespace dtrain::testing {
namespace {

void write(const Path& path, const char* type, const std::vector<std::int64_t>& shape, ByteView values) {
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': (", type);
  for (const std::int64_t extent : shape) header += fmt::format("{}, ", extent);
  header += "), }";
  constexpr std::size_t before = 10;  // magic, version and the header's length; all of it is padded to 64 bytes
  while ((before + header.size() + 1) % 64 != 0) header += ' ';
  header += '\n';
  AtomicFile file(path);
  file.write(std::string_view("\x93NUMPY\x01\x00", 8));
  const std::string length = {static_cast<char>(header.size() & 0xff), static_cast<char>(header.size() >> 8)};
  file.write(length);
  file.write(header);
  file.write(values);
  file.commit();
}

}  // namespace

void write_npy(const Path& path, const std::vector<std::int64_t>& shape, std::span<const float> values) {
  write(path, "<f4", shape, std::as_bytes(values));
}

void write_npy(const Path& path, const std::vector<std::int64_t>& shape, std::span<const std::int32_t> values) {
  write(path, "<i4", shape, std::as_bytes(values));
}

void write_npy(const Path& path, const std::vector<std::int64_t>& shape, std::span<const std::uint32_t> values) {
  write(path, "<u4", shape, std::as_bytes(values));
}

}  // namespace dtrain::testing
