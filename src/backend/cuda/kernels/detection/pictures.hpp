// What the pictures of a batch show, on the device. Groups are left out: they are nothing to learn.
#pragma once

#include <dtrain/nn/objects.hpp>

#include "../../kernel.hpp"

namespace dtrain::backend::cuda {

struct PictureRow {
  std::int32_t height, width;  // what the picture fills of the image
  std::int32_t first, objects;
};

// An item that may be drawn.
struct DrawnItem {
  std::int32_t match;  // the object that it stands for, or kBackground
  std::uint32_t word;  // the lowest are drawn
  std::int32_t is_drawn;
};

// A thread has every kObjectLanes-th object of a picture.
constexpr std::int32_t kObjectLanes = 64;
// The overlaps of an object with all anchors are compared in so many parts.
constexpr std::int32_t kOverlapParts = 1024;

// Objects of all pictures in a row: picture by picture.
struct PictureTable {
  const PictureRow* rows = nullptr;  // [n]; null: pictures that fill the image and show nothing
  const nn::Box* boxes = nullptr;
  const std::int32_t* classes = nullptr;
  const std::uint32_t* masks = nullptr;  // [objects][h][words of w bits, the first one lowest]
  // Room that kernels use while they compute a shard.
  float* part_overlaps = nullptr;  // [objects][kOverlapParts]
  float* best_overlaps = nullptr;  // [objects]
  DrawnItem* items = nullptr;      // [objects]

  DTRAIN_KERNEL PictureRow picture(std::int64_t sample, std::int32_t h, std::int32_t w) const {
    return rows ? rows[sample] : PictureRow{h, w, 0, 0};
  }
};

DTRAIN_KERNEL constexpr std::int32_t mask_words(std::int32_t w) { return (w + 31) / 32; }

}  // namespace dtrain::backend::cuda
