#include <dtrain/train/predict.hpp>

#include <algorithm>
#include <vector>

#include <dtrain/backend/aligned_room.hpp>
#include <dtrain/base/error.hpp>
#include <dtrain/base/ordered_work.hpp>

namespace dtrain::train {
namespace {

struct Decoded {
  std::vector<float> image;  // [c, h, w]
  std::string problem;
};

Decoded decode(const std::string& content, const data::Augment& augment, std::size_t index, const nn::Shape& shape) {
  thread_local data::Image scratch;
  Decoded decoded{std::vector<float>(static_cast<std::size_t>(shape.size())), {}};
  data::decode_and_augment(bytes_of(content), augment, {.sample = static_cast<std::uint32_t>(index)}, shape, scratch,
                           decoded.image);
  return decoded;
}

// Gathers pictures until a batch is full. One thread.
class Batcher {
 public:
  Batcher(const nn::Graph& graph, backend::Executable& executable, int batch,
          const std::function<void(const Prediction&)>& take)
      : executable_(executable),
        take_(take),
        batch_(static_cast<std::size_t>(batch)),
        classes_(static_cast<std::size_t>(graph.classes())),
        image_(static_cast<std::size_t>(graph.input().size())),
        images_(backend::aligned_room(memory_, batch_ * image_)) {}

  void add(std::size_t index, Decoded decoded) {
    if (decoded.problem.empty()) {
      std::ranges::copy(decoded.image, images_ + filled_ * image_);
      ++filled_;
    }
    pictures_.push_back({index, std::move(decoded.problem)});
    if (filled_ == batch_) compute();
  }

  void compute() {
    std::vector<float> logits(filled_ * classes_);
    if (filled_ > 0) {
      const std::vector<std::int32_t> labels(filled_);
      const std::vector<std::uint32_t> ids(filled_);
      executable_.evaluate({static_cast<int>(filled_), images_, labels.data(), ids.data()}, logits);
    }
    std::size_t computed = 0;
    for (Picture& each : pictures_) {
      if (!each.problem.empty()) {
        take_({each.index, {}, std::move(each.problem)});
      } else {
        take_({each.index, std::span(logits).subspan(computed++ * classes_, classes_), {}});
      }
    }
    pictures_.clear();
    filled_ = 0;
  }

 private:
  struct Picture {
    std::size_t index = 0;
    std::string problem;
  };

  backend::Executable& executable_;
  const std::function<void(const Prediction&)>& take_;
  const std::size_t batch_, classes_, image_;  // floats of an image
  std::vector<float> memory_;
  float* const images_;
  std::size_t filled_ = 0;
  std::vector<Picture> pictures_;
};

}  // namespace

void predict(const nn::Graph& graph, backend::Executable& executable, std::size_t count,
             const std::function<std::string(std::size_t)>& read, const PredictOptions& options,
             const std::function<void(const Prediction&)>& take) {
  DTRAIN_CHECK(options.batch >= 1 && options.threads >= 1, "pictures come in batches");
  data::check_augment(options.augment);
  const nn::Shape shape = graph.input();
  Batcher batcher(graph, executable, options.batch, take);
  const auto make = [&](std::size_t i) -> Decoded {
    try {
      return decode(read(i), options.augment, i, shape);
    } catch (const Stopped&) {
      throw;
    } catch (const Error& error) {
      return {{}, error.what()};
    }
  };
  make_in_order<Decoded>(count, options.threads, make,
                         [&](std::size_t i, Decoded decoded) { batcher.add(i, std::move(decoded)); });
  batcher.compute();
}

}  // namespace dtrain::train
