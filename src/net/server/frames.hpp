// Frames in a stream of bytes: the size as u32 little-endian, then so many bytes.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include <dtrain/net/channel.hpp>

namespace dtrain::net {

constexpr std::size_t kFrameHeader = 4;

std::string frame_header(std::size_t size);

// Cuts a stream into frames, however it was torn on the way.
class FrameReader {
 public:
  void add(std::string_view bytes);
  // The next whole frame. Throws RemoteError when the stream announces a frame larger than kMaxFrame.
  std::optional<std::string> next();

 private:
  std::string bytes_;
  std::size_t begin_ = 0;  // of what was not given out yet
};

}  // namespace dtrain::net
