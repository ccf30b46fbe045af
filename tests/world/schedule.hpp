// A random sequence of disturbances that depends on its seed alone (their times depend on threads too).
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include <dtrain/base/random.hpp>

#include "checked_training.hpp"

namespace dtrain::world {

// The place where the next worker of a host dies or hangs, once.
struct PlannedFault {
  Place place = Place::enter;
  int count = 0;  // number of passes of the place before that
  Fault fault = Fault::die;
};

// The faults that are planned for hosts. Any thread.
class FaultPlan {
 public:
  void set(const std::string& host, const PlannedFault& fault);
  Fault fault_at(const std::string& host, Place place, int count);

 private:
  std::mutex mutex_;
  std::map<std::string, PlannedFault> faults_;
};

class Schedule {
 public:
  // Two to six disturbances within so many samples, beginning with one to four hosts.
  Schedule(std::uint32_t seed, std::uint64_t samples);
  const std::vector<std::string>& hosts() const { return hosts_; }
  // For SimOptions::fault_at; the schedule must outlive the job.
  FaultAt fault_at();
  void act(SimJob& job);

 private:
  void disturb(SimJob& job);
  void add(SimJob& job);
  void add_failing(SimJob& job);
  void remove(SimJob& job);
  void replace(SimJob& job);
  void fail_member(SimJob& job, Fault fault);
  void kill_members(SimJob& job, std::uint32_t count);
  elastic::WorkerId any_member(SimJob& job);
  std::string unused_host();

  RandomStream random_;
  FaultPlan faults_;
  std::vector<std::uint64_t> when_;  // samples seen, the next one last
  std::vector<std::string> hosts_;
  int named_ = 0;
};

}  // namespace dtrain::world
