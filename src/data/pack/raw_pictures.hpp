// Pixels that have no encoding of their own, as dtrain's.
#pragma once

#include "codec/codecs.hpp"
#include "remote/published_files.hpp"

namespace dtrain::data {

inline SourceBytes raw_picture(const std::string& name, const Image& image) {
  const auto payload = std::make_shared<const std::string>(encode_pixels(image, Encoding::raw));
  return {name, bytes_of(*payload), payload};
}

}  // namespace dtrain::data
