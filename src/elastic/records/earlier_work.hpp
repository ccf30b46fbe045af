// What earlier coordinators of a job recorded of its work, from which the next one continues the job's goodput.
#pragma once

#include <chrono>
#include <optional>
#include <vector>

#include <dtrain/base/json.hpp>
#include <dtrain/elastic/records.hpp>

namespace dtrain::elastic {

struct EarlierWork {
  WallTime first_step{};                   // to the second
  std::chrono::duration<double> paused{};  // in all changes of generation since then
  bool is_of_program = false;              // a launched one, which counts no samples
};

// Of the job that was begun last; nullopt: it has made no step, or it has ended.
std::optional<EarlierWork> earlier_work_in(const std::vector<Json>& events);

}  // namespace dtrain::elastic
