#include "detection_score.hpp"

#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

#include <dtrain/base/error.hpp>
#include <dtrain/train/found_objects.hpp>

namespace dtrain::train {
namespace {

struct PictureHead {
  std::uint64_t picture = 0, truths = 0, found = 0;
};
// They travel as they lie in memory: all ranks are one build. Masks do not travel.
static_assert(std::is_trivially_copyable_v<TrueObject> && std::is_trivially_copyable_v<FoundObject>);

template <typename Value>
void append(std::string& bytes, std::span<const Value> values) {
  bytes.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
}

template <typename Value>
std::vector<Value> take(std::string_view& bytes, std::uint64_t count) {
  if (bytes.size() / sizeof(Value) < count) throw PeerLost("a rank sent half of what it found");
  std::vector<Value> values(count);
  if (count > 0) std::memcpy(values.data(), bytes.data(), count * sizeof(Value));
  bytes.remove_prefix(count * sizeof(Value));
  return values;
}

std::vector<TrueObject> true_objects(const nn::PictureObjects& picture) {
  std::vector<TrueObject> truths;
  for (std::size_t k = 0; k < picture.boxes.size(); ++k) {
    truths.push_back({.category = picture.classes[k],
                      .crowd = picture.crowd[k] != 0,
                      .area = picture.areas[k],
                      .box = box_in_picture(picture, picture.boxes[k])});
  }
  return truths;
}

}  // namespace

void DetectionScore::add(const backend::HostBatch& batch, std::span<const float> results) {
  DTRAIN_CHECK(batch.objects || batch.n == 0, "a detector is judged by what pictures show");
  const nn::Detections& layer = *nn::detection_of(graph_);
  const auto size = static_cast<std::size_t>(layer.result_size());
  for (int i = 0; i < batch.n; ++i) {
    const std::vector<TrueObject> truths = true_objects(batch.objects[i]);
    const std::vector<FoundObject> found =
        found_objects(layer, batch.objects[i], results.subspan(static_cast<std::size_t>(i) * size, size));
    const PictureHead head{batch.sample_ids[i], truths.size(), found.size()};
    append(pictures_, std::span(&head, 1));
    append(pictures_, std::span(truths));
    append(pictures_, std::span(found));
  }
}

void DetectionScore::finish(comm::Communicator& comm, EvaluationReport& report) const {
  AveragePrecision precision(OverlapOf::boxes, static_cast<std::size_t>(graph_.classes()));
  for (const std::string& rank : comm.all_gather(std::as_bytes(std::span(pictures_)))) {
    for (std::string_view bytes = rank; !bytes.empty();) {
      const PictureHead head = take<PictureHead>(bytes, 1).front();
      const std::vector<TrueObject> truths = take<TrueObject>(bytes, head.truths);
      const std::vector<FoundObject> found = take<FoundObject>(bytes, head.found);
      precision.add(head.picture, truths, found);
    }
  }
  report.boxes = precision.figures();
  report.boxes_by_class = precision.by_category();
  report.loss = std::numeric_limits<double>::quiet_NaN();
  report.accuracy = report.boxes->ap;
  report.top_k_accuracy = report.boxes->ap50;
}

}  // namespace dtrain::train
