#include "train_events.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <dtrain/base/error.hpp>
#include <dtrain/base/with_flags.hpp>

namespace dtrain::job {
namespace {

std::uint64_t as_step(double number) { return static_cast<std::uint64_t>(std::clamp(number, 0.0, 0x1p53)); }

}  // namespace

void JsonEvents::on_event(const train::ReportEvent& event) {
  Json json = Json::object({{"schema", "dtrain.train/1"}});
  const Json report = train::to_json(event);
  for (const auto& [key, value] : report.as_object()) json[key] = value;
  if (const Json* message = report.find("message")) json["message"] = with_flags(message->as_string());
  reporter_.answer_json(json);
}

BoardEvents::BoardEvents(const Path& folder, const config::DataOptions& data, bool resumed, Reporter& reporter,
                         StepNumbers earlier, std::uint64_t begin)
    : writer_(folder),
      data_(data),
      reporter_(reporter),
      restarts_(resumed),
      numbers_(std::move(earlier)),
      begin_(begin) {
  if (writer_.is_behind()) flush();
}

std::uint64_t BoardEvents::end_of(std::uint32_t epoch) const {
  if (step_ > 0) return step_;
  const double last = numbers_.last_of(epoch);
  return last > 0 ? as_step(last) : begin_;
}

void BoardEvents::flush() {
  try {
    writer_.flush();
  } catch (const Error& error) {
    if (complaints_.insert(error.what()).second) reporter_.warn(error.what());
  }
}

void BoardEvents::on_first_batch(const data::Batch& batch) {
  writer_.image("train/first_batch", picture_of(batch, data_), 0);
}

void BoardEvents::on_step(const train::StepReport& report) {
  step_ = as_step(numbers_.add(report.epoch, static_cast<double>(report.step), static_cast<double>(report.steps)));
  if (std::exchange(restarts_, false)) writer_.restart(step_);
  writer_.scalar("train/loss", report.loss, step_);
  if (!std::isnan(report.accuracy)) writer_.scalar("train/accuracy", report.accuracy, step_);
  for (const train::LossPart& part : report.parts) writer_.scalar("train/" + part.name, part.value, step_);
  writer_.scalar("train/learning_rate", report.learning_rate, step_);
  if (report.time.count() > 0) writer_.scalar("train/samples_per_second", report.samples / report.time.count(), step_);
  if (writer_.is_behind()) flush();
}

void BoardEvents::on_epoch(const train::EpochReport& report) {
  const std::uint64_t step = end_of(report.epoch);
  writer_.scalar("epoch/loss", report.loss, step);
  if (!std::isnan(report.accuracy)) writer_.scalar("epoch/accuracy", report.accuracy, step);
  flush();
}

void BoardEvents::on_evaluation(const train::EvaluationReport& report) {
  const std::uint64_t step = end_of(report.epoch);
  if (!std::isnan(report.loss)) writer_.scalar("validation/loss", report.loss, step);
  writer_.scalar(report.boxes ? "validation/AP" : "validation/accuracy", report.accuracy, step);
  if (report.masks) writer_.scalar("validation/mask_AP", report.masks->ap, step);
  flush();
}

void Observers::on_first_batch(const data::Batch& batch) {
  for (auto* observer : observers_) observer->on_first_batch(batch);
}
void Observers::on_step(const train::StepReport& report) {
  for (auto* observer : observers_) observer->on_step(report);
}
void Observers::on_epoch(const train::EpochReport& report) {
  for (auto* observer : observers_) observer->on_epoch(report);
}
void Observers::on_evaluation(const train::EvaluationReport& report) {
  for (auto* observer : observers_) observer->on_evaluation(report);
}
void Observers::on_checkpoint(const Path& path) {
  for (auto* observer : observers_) observer->on_checkpoint(path);
}
void Observers::on_shards(const train::ShardsReport& report) {
  for (auto* observer : observers_) observer->on_shards(report);
}
void Observers::on_note(const std::string& text) {
  for (auto* observer : observers_) observer->on_note(text);
}
void Observers::on_warning(const std::string& text) {
  for (auto* observer : observers_) observer->on_warning(text);
}
void Observers::on_lost(const std::string& text) {
  for (auto* observer : observers_) observer->on_lost(text);
}

data::Image picture_of(const data::Batch& batch, const config::DataOptions& data) {
  constexpr int kMostImages = 64;
  const nn::Shape& shape = batch.shape;
  const int shown = std::min(batch.n, kMostImages);
  const int columns = static_cast<int>(std::ceil(std::sqrt(shown)));
  const int rows = (shown + columns - 1) / columns;
  data::Image picture{shape.c, rows * shape.h, columns * shape.w, {}};
  picture.pixels.resize(static_cast<std::size_t>(picture.c) * static_cast<std::size_t>(picture.h) *
                        static_cast<std::size_t>(picture.w));
  const std::vector<float> images = data::images_of(batch, shape);
  const float* value = images.data();
  for (int i = 0; i < shown; ++i) {
    for (int c = 0; c < shape.c; ++c) {
      const auto channel = static_cast<std::size_t>(c);
      for (int y = 0; y < shape.h; ++y) {
        for (int x = 0; x < shape.w; ++x) {
          const float level = *value++ * data.augment.std[channel] + data.augment.mean[channel];
          const int row = i / columns * shape.h + y, column = i % columns * shape.w + x;
          const std::int64_t pixel = std::int64_t{row} * picture.w + column;
          picture.pixels[static_cast<std::size_t>(pixel * shape.c + c)] =
              static_cast<std::uint8_t>(std::clamp(std::round(level), 0.0f, 255.0f));
        }
      }
    }
  }
  return picture;
}

}  // namespace dtrain::job
