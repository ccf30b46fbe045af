#include "frames.hpp"

#include <fmt/format.h>

#include <cstdint>

#include <dtrain/base/error.hpp>

namespace dtrain::net {

std::string frame_header(std::size_t size) {
  std::string header;
  for (int shift = 0; shift < 32; shift += 8) header += static_cast<char>(size >> shift & 0xff);
  return header;
}

void FrameReader::add(std::string_view bytes) {
  bytes_.erase(0, begin_);
  begin_ = 0;
  bytes_ += bytes;
}

std::optional<std::string> FrameReader::next() {
  const std::string_view rest = std::string_view(bytes_).substr(begin_);
  if (rest.size() < kFrameHeader) return std::nullopt;
  std::size_t size = 0;
  for (std::size_t i = 0; i < kFrameHeader; ++i) size |= std::size_t{static_cast<unsigned char>(rest[i])} << 8 * i;
  if (size > kMaxFrame) throw RemoteError(fmt::format("the peer announces a frame of {} bytes", size));
  if (rest.size() < kFrameHeader + size) return std::nullopt;
  begin_ += kFrameHeader + size;
  return std::string(rest.substr(kFrameHeader, size));
}

}  // namespace dtrain::net
