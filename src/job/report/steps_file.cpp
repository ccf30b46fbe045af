#include "steps_file.hpp"

#include <cmath>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include <dtrain/base/file_exists.hpp>
#include <dtrain/base/file_pieces.hpp>
#include <dtrain/base/text.hpp>

namespace dtrain::job {
namespace {

constexpr std::chrono::seconds kWindow(1);

// The whole number behind `key`, as append() writes it; nullopt: the line has none, or is cut off inside it.
std::optional<double> number_in(std::string_view line, std::string_view key) {
  const std::size_t at = line.find(key);
  if (at == line.npos) return std::nullopt;
  const std::string_view rest = line.substr(at + key.size());
  const std::size_t end = rest.find(',');
  const auto number = end == rest.npos ? std::nullopt : parse_integer(rest.substr(0, end));
  return number && *number >= 0 ? std::optional(static_cast<double>(*number)) : std::nullopt;
}

// Searched for, and not parsed: the lines are as many as the seconds of the training.
void add_step(std::string_view line, StepNumbers& numbers) {
  const auto epoch = number_in(line, "\"epoch\":"), step = number_in(line, "\"step\":");
  const auto steps = number_in(line, "\"steps\":");
  if (epoch && step && steps) numbers.add(*epoch, *step, *steps);
}

}  // namespace

StepsFile::StepsFile(Path path) : path_(std::move(path)) {}

void StepsFile::begin(bool resumed) {
  if (!resumed) std::filesystem::remove(path_);
  append(Json::object({{"begins", true}}));
}

void StepsFile::on_step(const train::StepReport& report) {
  const auto now = std::chrono::steady_clock::now();
  if (samples_ == 0) since_ = now;
  last_ = report;
  samples_ += report.samples;
  seconds_ += report.time.count();
  loss_ += report.loss * report.samples;
  accuracy_ += report.accuracy * report.samples;
  if (std::isfinite(report.gradient_norm)) gradient_norm_ = report.gradient_norm;
  parts_.resize(report.parts.size());
  for (std::size_t part = 0; part < parts_.size(); ++part) parts_[part] += report.parts[part].value * report.samples;
  if (now - since_ >= kWindow) write_window();
}

void StepsFile::on_epoch(const train::EpochReport&) { write_window(); }

void StepsFile::write_window() {
  if (samples_ == 0) return;
  const int samples = std::exchange(samples_, 0);
  Json line = Json::object({{"epoch", std::int64_t{last_.epoch}},
                            {"step", last_.step},
                            {"steps", last_.steps},
                            {"samples", samples},
                            {"seconds", std::exchange(seconds_, 0)},
                            {"loss", std::exchange(loss_, 0) / samples}});
  const double accuracy = std::exchange(accuracy_, 0) / samples;
  if (!std::isnan(accuracy)) line["accuracy"] = accuracy;
  for (std::size_t part = 0; part < parts_.size(); ++part) {
    line[last_.parts[part].name] = std::exchange(parts_[part], 0) / samples;
  }
  line["learning_rate"] = last_.learning_rate;
  const double norm = std::exchange(gradient_norm_, std::numeric_limits<double>::quiet_NaN());
  if (std::isfinite(norm)) line["gradient_norm"] = norm;
  line["samples_seen"] = last_.samples_seen;
  append(std::move(line));
}

void StepsFile::append(Json line) {
  if (!file_) file_ = std::make_unique<elastic::LineFile>(path_);
  Json whole = Json::object({{"time", elastic::format_time(std::chrono::system_clock::now())}});
  for (const auto& [key, value] : line.as_object()) whole[key] = value;
  file_->append(whole.dump(), false);
}

StepNumbers step_numbers_in(const Path& file) {
  StepNumbers numbers;
  if (!file_exists(file)) return numbers;
  FilePieces pieces(file);
  std::string begun;  // a line whose end is in the next piece
  for (std::string_view piece = pieces.next(); !piece.empty(); piece = pieces.next()) {
    for (std::size_t end = piece.find('\n'); end != piece.npos; end = piece.find('\n')) {
      begun += piece.substr(0, end);
      add_step(begun, numbers);
      begun.clear();
      piece.remove_prefix(end + 1);
    }
    begun += piece;
  }
  return numbers;
}

}  // namespace dtrain::job
