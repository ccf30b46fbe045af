// TensorBoard event files: TFRecord frames of Event messages (tensorflow/core/util/event.proto), scalars and PNG
// images.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include <dtrain/base/files.hpp>
#include <dtrain/data/image.hpp>

namespace dtrain::train {

// Events wait in memory until there are many of them. What the disk does not take waits too, and is written later.
class EventWriter {
 public:
  // Makes the folder and events.out.tfevents.<time>.<host>.<pid>; throws Error if it cannot.
  explicit EventWriter(const Path& folder);
  ~EventWriter();
  void scalar(std::string_view tag, double value, std::uint64_t step);
  void image(std::string_view tag, const data::Image& image, std::uint64_t step);
  // From this step on, these events replace those of the folder's older files.
  void restart(std::uint64_t step);
  void flush();            // throws Error if the disk does not take all events
  bool is_behind() const;  // the disk did not take all that was given to it

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace dtrain::train
