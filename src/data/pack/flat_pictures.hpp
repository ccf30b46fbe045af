// Pixels that come without a file of their own, as a file that every program reads.
#pragma once

#include <dtrain/data/image.hpp>

#include "remote/published_files.hpp"

namespace dtrain::data {

inline SourceBytes flat_picture(const std::string& name, const Image& image) {
  const auto payload = std::make_shared<const std::string>(encode_flat_png(image));
  return {name, bytes_of(*payload), payload};
}

}  // namespace dtrain::data
