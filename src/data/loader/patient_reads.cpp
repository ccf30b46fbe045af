#include "patient_reads.hpp"

#include <fmt/format.h>

#include <thread>

namespace dtrain::data {
namespace {

constexpr std::chrono::milliseconds kLookEvery{50};

bool may_pass(const net::AwsError& error) {
  const net::AwsProblem problem = error.facts().problem;
  return problem == net::AwsProblem::transient || problem == net::AwsProblem::throttled;
}

}  // namespace

bool PatientReads::outlast(const net::AwsError& error, Tries& tries, const std::atomic<bool>& dropped) {
  if (options_.patience == options_.patience.zero() || !may_pass(error)) return false;
  const Clock::time_point again = Clock::now() + tries.pause;
  if (again > end_of_patience(error)) return false;
  ++tries.pauses;
  tries.pause = longer_pause(tries.pause);
  while (!dropped && Clock::now() < again) std::this_thread::sleep_for(kLookEvery);
  return !dropped;
}

PatientReads::Clock::time_point PatientReads::end_of_patience(const net::AwsError& error) {
  const MutexLock lock(mutex_);
  const Clock::time_point now = Clock::now();
  if (!outage_ || now - outage_->last_failure > options_.patience) {
    outage_ = {now, now};
    if (options_.remote.tell) {
      options_.remote.tell(
          fmt::format("{}: the run waits for its data, up to {} s", error.what(), options_.patience.count()));
    }
  }
  outage_->last_failure = now;
  return outage_->begin + options_.patience;
}

void PatientReads::recovered() {
  const MutexLock lock(mutex_);
  outage_.reset();
}

}  // namespace dtrain::data
