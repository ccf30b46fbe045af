#include "detection_score.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include <dtrain/base/error.hpp>
#include <dtrain/base/parallel.hpp>
#include <dtrain/train/found_objects.hpp>

namespace dtrain::train {
namespace {

// Each piece has the deadline of a gathering, also over slow links.
constexpr std::size_t kPiece = 1 << 20;

// `masks` gets what the objects borrow.
std::vector<TrueObject> true_objects(const nn::PictureObjects& picture, std::vector<data::Rle>& masks) {
  for (const std::vector<std::uint32_t>& runs : picture.runs) {
    masks.push_back({picture.original_height, picture.original_width, runs});
  }
  std::vector<TrueObject> truths;
  for (std::size_t k = 0; k < picture.boxes.size(); ++k) {
    const nn::AnnotatedBox& box = picture.annotated[k];
    truths.push_back({.category = picture.classes[k],
                      .crowd = picture.crowd[k] != 0,
                      .area = picture.areas[k],
                      .box = {box.left, box.top, box.width, box.height},
                      .mask = masks.empty() ? nullptr : &masks[k]});
  }
  return truths;
}

AveragePrecision of_all_ranks(const AveragePrecision& mine, OverlapOf what, std::size_t classes,
                              comm::Communicator& comm) {
  AveragePrecision all(what, classes);
  const std::string bytes = mine.bytes();
  for (const std::string& rank : gather_in_pieces(comm, std::as_bytes(std::span(bytes)))) all.merge(rank);
  return all;
}

std::vector<std::uint64_t> gather_sizes(comm::Communicator& comm, std::uint64_t mine) {
  std::vector<std::uint64_t> sizes;
  for (const std::string& text : comm.all_gather(std::as_bytes(std::span(&mine, 1)))) {
    if (text.size() != sizeof mine) throw PeerLost("a rank gave no size of what it found");
    std::memcpy(&sizes.emplace_back(), text.data(), sizeof mine);
  }
  return sizes;
}

}  // namespace

// All ranks make as many rounds as the longest bytes need.
std::vector<std::string> gather_in_pieces(comm::Communicator& comm, ByteView mine) {
  const std::vector<std::uint64_t> sizes = gather_sizes(comm, mine.size());
  std::vector<std::string> all(sizes.size());
  for (std::uint64_t first = 0; first < std::ranges::max(sizes); first += kPiece) {
    const std::size_t begin = std::min<std::size_t>(first, mine.size());
    const std::vector<std::string> pieces = comm.all_gather(mine.subspan(begin, std::min(kPiece, mine.size() - begin)));
    for (std::size_t rank = 0; rank < all.size(); ++rank) all[rank] += pieces[rank];
  }
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].size() != sizes[rank]) throw PeerLost("a rank gave less of what it found than it has");
  }
  return all;
}

DetectionScore::DetectionScore(const nn::Graph& graph)
    : layer_(*nn::detection_of(graph)),
      classes_(static_cast<std::size_t>(graph.classes())),
      boxes_(OverlapOf::boxes, classes_) {
  if (layer_.mask > 0) masks_.emplace(OverlapOf::masks, classes_);
}

void DetectionScore::add(const backend::HostBatch& batch, std::span<const float> results) {
  DTRAIN_CHECK(batch.objects || batch.n == 0, "a detector is judged by what pictures show");
  const auto size = static_cast<std::size_t>(layer_.result_size());
  for_each_in_parallel(static_cast<std::size_t>(batch.n), [&](std::size_t i) {
    const nn::PictureObjects& picture = batch.objects[i];
    DTRAIN_CHECK(picture.annotated.size() == picture.boxes.size(), "boxes are judged as they were annotated");
    DTRAIN_CHECK(!masks_ || picture.runs.size() == picture.boxes.size(), "masks are judged by true masks");
    std::vector<data::Rle> masks;
    const std::vector<TrueObject> truths = true_objects(picture, masks);
    FoundObjects found = found_objects(layer_, picture, results.subspan(i * size, size));
    boxes_.add(batch.sample_ids[i], truths, found.objects);
    if (!masks_) return;
    for (FoundObject& object : found.objects) object.area = static_cast<double>(data::mask_area(*object.mask));
    masks_->add(batch.sample_ids[i], truths, found.objects);
  });
}

void DetectionScore::finish(comm::Communicator& comm, EvaluationReport& report) const {
  const AveragePrecision boxes = of_all_ranks(boxes_, OverlapOf::boxes, classes_, comm);
  report.boxes = boxes.figures();
  report.boxes_by_class = boxes.by_category();
  if (masks_) {
    const AveragePrecision masks = of_all_ranks(*masks_, OverlapOf::masks, classes_, comm);
    report.masks = masks.figures();
    report.masks_by_class = masks.by_category();
  }
  report.loss = std::numeric_limits<double>::quiet_NaN();
  report.accuracy = report.boxes->ap;
}

}  // namespace dtrain::train
