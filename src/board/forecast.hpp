// How long a training still takes, from what its own records show of it. Nothing is guessed: where too little was
// measured there is no forecast.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace dtrain::board {

// Less than this says nothing: first steps are slow, and lines come once a second.
inline constexpr std::chrono::seconds kLeastMeasured{10};

struct Forecast {
  double samples_per_second = 0;  // with evaluations, checkpoints and pauses
  double measured_seconds = 0;    // since then, or since the last complete epoch began
  double epochs = 0, epochs_done = 0;
  double samples_of_epoch = 0;

  double samples_left() const { return (epochs - epochs_done) * samples_of_epoch; }
  double seconds_left() const { return samples_left() / samples_per_second; }
  double seconds() const { return epochs * samples_of_epoch / samples_per_second; }  // of the whole training
};

// Bytes of a file: so many from there on.
using ReadPart = std::function<std::string(std::uint64_t from, std::uint64_t size)>;

// The end of a steps.jsonl of `size` bytes: as much of it as forecast_of() looks at, but at most 64 MiB.
std::string steps_for_forecast(std::uint64_t size, const ReadPart& read);

// `steps`: steps.jsonl, or steps_for_forecast() of it; `settings`: train.toml. Pure. Throws UsageError where too little
// was measured.
Forecast forecast_of(std::string_view steps, std::string_view settings);

}  // namespace dtrain::board
