// Average precision and recall of detections, as COCO defines them and pycocotools computes them.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <dtrain/base/json.hpp>
#include <dtrain/data/rle.hpp>

namespace dtrain::train {

enum class OverlapOf { boxes, masks };

// Masks are borrowed, of one size in a picture, and only looked at where masks are compared.
struct TrueObject {
  std::int32_t category = 0;  // its position, from 0
  bool crowd = false;
  double area = 0;  // as it was annotated
  data::PixelBox box;
  const data::Rle* mask = nullptr;
};

struct FoundObject {
  std::int32_t category = 0;
  double score = 0;
  double area = 0;
  data::PixelBox box;
  const data::Rle* mask = nullptr;
};

// COCO's twelve numbers. ap: mean over the overlaps 0.50, 0.55, ... 0.95 of at most 100 objects a picture; small,
// medium and large: of true objects below 32^2 pixels, to 96^2 and above. ar: mean of the recall, of at most 1, 10 or
// 100. -1: there is nothing to measure.
struct CocoFigures {
  double ap = -1, ap50 = -1, ap75 = -1, ap_small = -1, ap_medium = -1, ap_large = -1;
  double ar1 = -1, ar10 = -1, ar100 = -1, ar_small = -1, ar_medium = -1, ar_large = -1;
};
struct NamedFigure {
  const char* name;  // "ap", "ap50", ...
  const char* text;  // "AP at overlap 0.50"
  double CocoFigures::*value;
};
std::span<const NamedFigure> coco_figure_names();
Json figures_json(const CocoFigures& figures);

// Takes picture after picture, in any order and on any number of threads: figures do not depend on it. Memory: 40 bytes
// a found object, of which the 100 of the highest scores of each category count in each picture.
class AveragePrecision {
 public:
  AveragePrecision(OverlapOf what, std::size_t categories);
  ~AveragePrecision();
  AveragePrecision(AveragePrecision&&) noexcept;
  // Every picture once, with all that it shows and all that was found in it; equal scores count in the order of the
  // pictures' numbers, then in the order given. Objects of categories that there are not are left out. Throws DataError
  // for a score that is no number.
  void add(std::uint64_t picture, std::span<const TrueObject> truth, std::span<const FoundObject> found);
  // All that was added, as it lies in memory: for another one of the same build, whose merge() adds it there. merge()
  // throws PeerLost for bytes that are no such thing.
  std::string bytes() const;
  void merge(std::string_view bytes);
  CocoFigures figures() const;
  std::vector<CocoFigures> by_category() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace dtrain::train
