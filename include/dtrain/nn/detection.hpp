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

// What a detector says of a picture: at most `detections` rows of left, top, right, bottom, score and class, best
// first; a score of 0 ends them. A detector of masks adds to each row how likely each point of the box is the object's,
// row by row: mask x mask numbers in [0, 1] that fill the box.
struct Detections {
  static constexpr int kRow = 6;
  int classes = 0;
  int image_height = 0, image_width = 0;  // the graph's input, here and in the other layers of a detector
  float score_threshold = 0.05f;          // boxes need a higher score
  float overlap_threshold = 0.5f;  // of two boxes of one class that overlap by more, the one of the higher score stays
  int detections = 100;            // rows
  int mask = 0;                    // points along each side of a mask; 0: the detector finds boxes alone
  std::int64_t row_size() const { return kRow + std::int64_t{mask} * mask; }
  std::int64_t result_size() const { return detections * row_size(); }
};

// A value of `height` rows holds found.detections masks one below the other, with equally many rows between any two.
// The number of rows from the first row of a mask to that of the next; 0 where no such layout fits `height`.
int mask_rows(const Detections& found, int height);

// The usual size of the first level's anchors suits images of 800 pixels and more, as torchvision and TensorPack scale
// them. A detector misses most objects that are much smaller than its smallest anchors.
inline constexpr int kUsualAnchorSize = 32, kSmallestAnchor = 4, kLargestAnchor = 512;  // pixels of the image

// Last node of a one-stage detector (Lin et al., "Focal Loss for Dense Object Detection", 2017), as torchvision's
// RetinaNet has it, which gives up to 300 objects of a picture in place of the 100 here. Takes two inputs that hold the
// levels: for each anchor the logits of all classes, and for each anchor four numbers that move and scale it. A pixel
// has nine anchors: the shapes 1:2, 1:1 and 2:1 (height to width), each in three sizes of its level, which begin at
// `anchor_size` and double from level to level.
//
// Training adds up, for each picture, the focal loss of all anchors that are an object or background, and the distance
// of the four numbers of those that are objects; both are divided by the number of anchors that are objects, at least
// 1. An anchor is the object that it overlaps most from 0.5 on, and background below 0.4; the anchors that an object
// overlaps most are its own however little. Groups (crowd) are nothing.
struct DetectionLoss {
  static constexpr int kAnchors = 9;
  Detections found;
  Levels levels;
  int candidates = 1000;  // boxes of each level that are compared with each other
  int anchor_size = kUsualAnchorSize;
};

// The parts of a two-stage detector (Ren et al., "Faster R-CNN", 2015; He et al., "Mask R-CNN", 2017), as torchvision
// has them. A value of regions is [kRegion, regions, 1]: of each its left, top, right and bottom edge in pixels of the
// image, then two numbers. Regions that are not there have no area. No gradient goes through them. Proposals and
// FoundRegions give such values, and only RegionAlign, FoundRegions and RegionLoss take them.
constexpr int kRegion = 6;

// The regions that may show an object. Takes two inputs that hold the levels: of each anchor the logit that it shows
// one, and four numbers that move and scale it. A pixel has three anchors: 1:2, 1:1 and 2:1, of a size that is
// `anchor_size` in the first level and doubles from level to level.
//
// The best `candidates` of each level, cut off at the picture's edges, less those that overlap a better one of their
// level by more than `overlap_threshold`; of these the best `regions`. The two numbers are the score and 0.
// In training twice as many candidates, of which at most twice as many are left, and the objects themselves; a region
// is the object that it overlaps most from 0.5 on. Of those `regions` are drawn by seed, epoch and sample, a quarter of
// them objects at most, which come first; the two numbers are the object's index (-1: background) and class.
struct Proposals {
  static constexpr int kAnchors = 3;
  int regions = 512;
  Levels levels;
  int image_height = 0, image_width = 0;
  int candidates = 1000;
  float overlap_threshold = 0.7f;
  int anchor_size = kUsualAnchorSize;
};

// What a feature pyramid shows in each region, as `size` x `size` points (He et al. 2017: RoIAlign, two by two samples
// a point). Takes two inputs: the value that holds the levels, of which the first `used` count, and regions. A region
// of 224 x 224 pixels is looked up in the third level, one twice as large in the next. A region that is not there is 0.
// The result is [c*size*size, regions, 1], the values of a region in the order c, row, column; or, `apart`, the points
// as pixels, region below region with a row of zeros between two, so that a window of 3x3 sees of one region only.
struct RegionAlign {
  int size = 7;
  bool apart = false;
  Levels levels;
  int used = 4;
  int image_height = 0, image_width = 0;
};
// Sets the rows between regions of `size` rows to zero.
struct KeepRegions {
  int size = 0;
};

// The regions whose masks are asked for. Takes regions, their logits (background first) and their box codes (four
// numbers a class, background first). In evaluation the rows of Detections without masks; in training the regions that
// are objects, as the input has them: all, or found.detections of them, evenly spaced in the order of the input.
struct FoundRegions {
  Detections found;
};

// Last node of a two-stage detector. Takes the two inputs of Proposals, its regions, the two inputs of FoundRegions,
// its regions, and where found.mask is not 0 the logits of their masks, a channel a class (background first): region
// below region.
//
// A picture's loss is the sum of five parts. Of 256 anchors, at most half of them objects, drawn as Proposals draws:
// the mean cross-entropy of their logits, and the distance of the codes of the objects, divided by their number. Of all
// regions: the mean cross-entropy of the classes and the distance of the codes, as before. Of the found regions: the
// mean cross-entropy of the points of their masks. The distance is Girshick's smooth L1, linear from 1/9 on. An anchor
// is an object from an overlap of 0.7 on and background below 0.3; the anchors that an object overlaps most are its
// own. torchvision takes means over the pictures of a batch; here a picture's loss does not depend on the others.
struct RegionLoss {
  Detections found;
  Levels levels;
  int anchor_size = kUsualAnchorSize;  // that of Proposals
};

}  // namespace dtrain::nn
