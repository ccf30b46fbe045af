// The forecast of a training, as hours and dollars, for `cluster plan` and `cluster cost`.
#pragma once

#include <string>

#include <dtrain/base/reporter.hpp>
#include <dtrain/cluster/cost.hpp>
#include <dtrain/net/ssh.hpp>

#include "board/forecast.hpp"
#include "config/option_set.hpp"

namespace dtrain::cli {

// Both read the records of a training: in a folder of this machine, and in one of the machine that is logged in to.
// Throws UsageError where they allow no forecast.
board::Forecast forecast_in(const Path& folder);
board::Forecast forecast_on(net::SshSession& head, const Path& folder);

// Options of a command that forecasts the training on a cluster.
struct ForecastChoice {
  bool wanted = false;
  std::string job_dir{};  // as seen from the head; empty: the job that runs, or ran last
};
void bind_forecast(config::OptionSet& set, ForecastChoice& choice);
// Throws UsageError for options that mean nothing without each other.
void require_forecast(const ForecastChoice& choice);

// `hourly`: the price of an hour of all machines. `whole`: the whole training is asked for, and not what is left of it.
std::string forecast_line(const board::Forecast& forecast, const cluster::Cost& hourly, bool whole);
Json forecast_json(const board::Forecast& forecast, const cluster::Cost& hourly, bool whole);

}  // namespace dtrain::cli
