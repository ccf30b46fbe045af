// What the coordinator shows of its job: `dtrain hosts list` and Prometheus text.
#pragma once

#include <string>

#include <dtrain/base/json.hpp>
#include <dtrain/elastic/state.hpp>

#include "job_meter.hpp"

namespace dtrain::elastic {

// dtrain.hosts-list/1: every line of the host file, and hosts that are not quite gone. logical_shards: V, or 0.
Json hosts_list(const State& state, const JobMeter& meter, int logical_shards, Time now);

// Text exposition format 0.0.4.
std::string prometheus_text(const State& state, const JobMeter& meter, Time now);

}  // namespace dtrain::elastic
