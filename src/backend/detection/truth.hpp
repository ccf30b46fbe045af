// What a picture shows, as detectors learn it.
#pragma once

#include <cstdint>
#include <vector>

#include <dtrain/nn/objects.hpp>

namespace dtrain::backend {

// The objects that count: no groups.
struct Truth {
  std::vector<nn::Box> boxes;
  std::vector<std::int32_t> classes;
  std::vector<std::size_t> indices;  // in PictureObjects
};
// nullptr: the picture shows nothing.
Truth truth_of(const nn::PictureObjects* objects);

}  // namespace dtrain::backend
