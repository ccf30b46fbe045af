// What a detector's graph has beside convolutions. The levels of a feature pyramid lie side by side in one value, so
// that one convolution serves all of them and shapes stay fixed.
#pragma once

#include <cstdint>
#include <vector>

namespace dtrain::nn {

// A level has half the height and width of the one before, rounded up.
struct Levels {
  int count = 0;
  int height = 0, width = 0;  // of the first
  friend bool operator==(const Levels&, const Levels&) = default;
};

// Where a level lies in the value that holds them all. Between two levels there is a row or a column of zeros, so that
// a window of 3x3 pixels sees of one level only.
struct LevelPlace {
  int top = 0, left = 0, height = 0, width = 0;
};
std::vector<LevelPlace> level_places(const Levels& levels);
struct Extent {
  int height = 0, width = 0;
};
Extent extent_of(const Levels& levels);

// Takes two inputs: each pixel of the result is the first one's nearest, at the second one's size.
struct Upsample {};
// Takes the levels, the largest first; they have one number of channels.
struct Pyramid {};
// Sets to zero what lies outside the levels.
struct KeepLevels {
  Levels levels;
};

// Last node of a one-stage detector (Lin et al., "Focal Loss for Dense Object Detection", 2017), as torchvision's
// RetinaNet has it. Takes two inputs that hold the levels: for each anchor the logits of all classes, and for each
// anchor four numbers that move and scale it. A pixel has nine anchors: the shapes 1:2, 1:1 and 2:1 (height to width),
// each in three sizes of its level, which begin at 32 pixels and double from level to level.
//
// Training adds up, for each picture, the focal loss of all anchors that are an object or background, and the distance
// of the four numbers of those that are objects; both are divided by the number of anchors that are objects, at least
// 1. An anchor is the object that it overlaps most from 0.5 on, and background below 0.4; the anchors that an object
// overlaps most are its own whatever the overlap. Groups (crowd) are nothing.
//
// A result has `detections` rows of left, top, right, bottom, score and class, best first; a score of 0 ends them.
struct DetectionLoss {
  static constexpr int kAnchors = 9, kRow = 6;
  int classes = 0;
  Levels levels;
  int image_height = 0, image_width = 0;
  float score_threshold = 0.05f;   // of what is found
  float overlap_threshold = 0.5f;  // of two of one class, above which the better one stays
  int candidates = 1000;           // of a level, before such pairs are looked for
  int detections = 100;            // of a picture
  std::int64_t result_size() const { return std::int64_t{detections} * kRow; }
};

}  // namespace dtrain::nn
