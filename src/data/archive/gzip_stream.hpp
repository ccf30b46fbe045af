// A gzip file from front to end, as the bytes that it holds.
#pragma once

#include <memory>
#include <string_view>

#include "tar_stream.hpp"

namespace dtrain::data {

inline constexpr std::string_view kGzipStart = "\x1f\x8b";

class GzipStream {
 public:
  // `read` gives the file's own bytes, of which there are `size`. `source` is for messages.
  GzipStream(std::string source, std::uint64_t size, TarRead read);
  ~GzipStream();
  // Fills the span from this offset of the content; offsets grow. Throws DataError for damage and an early end.
  void read(std::uint64_t offset, std::span<std::byte> into);
  // Reads on to the end of the file, so that the checksum of each member is compared. What follows the last member and
  // is no gzip member is ignored, as gunzip() does it. Throws as read().
  void finish();
  std::uint64_t taken() const;  // bytes of the file that were read

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace dtrain::data
