// The coordinator's tables for the user: `dtrain hosts list` and Prometheus text.
#pragma once

#include <string>

#include <dtrain/base/json.hpp>

#include "decide/state.hpp"
#include "records/job_meter.hpp"

namespace dtrain::elastic {

// dtrain.hosts-list/1: every line of the host file, and removed hosts until they are gone. `state` is what the job
// does, with `state_reason`, and `stops_in_seconds` where it ends unless that changes.
Json hosts_list(const State& state, const JobMeter& meter, Time now);

// Text exposition format 0.0.4.
std::string prometheus_text(const State& state, const JobMeter& meter, Time now);

}  // namespace dtrain::elastic
