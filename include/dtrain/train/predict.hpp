// Logits of pictures that are no records, or what a detector finds in them, computed as evaluation computes them.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>

#include <dtrain/backend/backend.hpp>
#include <dtrain/data/augment.hpp>
#include <dtrain/data/objects.hpp>
#include <dtrain/nn/objects.hpp>

namespace dtrain::train {

struct PredictOptions {
  data::Augment augment;                                         // of evaluation: nothing random
  int batch = 1;                                                 // pictures that are computed together
  int threads = 1;                                               // that read and decode
  int views = 1;                                                 // of each picture, see nn::image_views()
  std::optional<data::DetectionInput> detection = std::nullopt;  // of a detector's network
  bool in_groups = false;  // compute the pictures of each of detection->groups by themselves: a GroupedExecutable
};

// What became of picture `index`: its logits [classes], or the reason why there are none. Those of a detector are the
// rows of nn::Detections, and `picture` says how the picture lies in the input that they are of.
struct Prediction {
  std::size_t index = 0;
  std::span<const float> logits;
  std::string problem;
  const nn::PictureObjects* picture = nullptr;
};

// Decodes read(0), ..., read(count - 1), the contents of image files, in threads and computes them in batches. Calls
// `take` on the caller's thread, in order. `executable` is that of `graph`, compiled for `batch` samples. read() may
// throw Error: then the picture has a problem, like one that cannot be decoded, and the others go on.
void predict(const nn::Graph& graph, backend::Executable& executable, std::size_t count,
             const std::function<std::string(std::size_t)>& read, const PredictOptions& options,
             const std::function<void(const Prediction&)>& take);

}  // namespace dtrain::train
