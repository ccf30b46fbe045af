// What a picture shows, in pixels of the network's input: after resizing, mirroring and padding.
#pragma once

#include <cstdint>
#include <vector>

namespace dtrain::nn {

// Edges; left < right, top < bottom.
struct Box {
  float left = 0, top = 0, right = 0, bottom = 0;
};

// As an object was annotated, in pixels of the original picture. It may reach beyond the picture's edges.
struct AnnotatedBox {
  double left = 0, top = 0, width = 0, height = 0;
};

struct PictureObjects {
  std::vector<Box> boxes;             // end at the picture's edges
  std::vector<std::int32_t> classes;  // of each box, in [0, classes); the background is none of them
  std::vector<std::uint8_t> crowd;    // 1: a group that is not counted one by one
  std::vector<double> areas;          // as they were annotated, in pixels of the original picture
  std::vector<std::uint8_t> masks;    // [boxes, h, w] of 0 and 1, the network's input size; empty: none asked for
  // Of each box its mask in the original picture: lengths of runs of 0 and of 1 by turns, 0 first, down the columns
  // from the left one; empty: none asked for.
  std::vector<std::vector<std::uint32_t>> runs = {};
  std::vector<AnnotatedBox> annotated = {};  // one for each box; evaluations score by these, as pycocotools does
  int height = 0, width = 0;                 // what the picture fills of the input, from the left upper corner
  float scale = 1;                           // input pixels per pixel of the original picture
  int original_height = 0, original_width = 0;
};

}  // namespace dtrain::nn
