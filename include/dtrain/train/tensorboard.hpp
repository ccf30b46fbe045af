// TensorBoard event files: TFRecord frames of Event messages (tensorflow/core/util/event.proto), scalars and PNG
// images.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include <dtrain/base/files.hpp>
#include <dtrain/data/image.hpp>

namespace dtrain::train {

class EventWriter {
 public:
  explicit EventWriter(const Path& folder);  // makes the folder and events.out.tfevents.<time>.<host>.<pid>
  ~EventWriter();
  void scalar(std::string_view tag, double value, std::uint64_t step);
  void image(std::string_view tag, const data::Image& image, std::uint64_t step);
  void flush();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace dtrain::train
