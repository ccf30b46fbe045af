// A random sequence of disturbances, a function of its seed alone (when they happen depends on threads too).
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include <dtrain/base/random.hpp>

#include "trial.hpp"

namespace dtrain::world {

// Where a worker of a host will end, once.
struct Doom {
  Place place = Place::enter;
  int count = 0;  // not before it passed the place so often
  Fate fate = Fate::die;
};

// Any thread.
class Dooms {
 public:
  void set(const std::string& host, const Doom& doom);
  Fate fate_of(const std::string& host, Place place, int count);

 private:
  std::mutex mutex_;
  std::map<std::string, Doom> dooms_;
};

class Schedule {
 public:
  // Two to six disturbances within so many samples, beginning with one to four hosts.
  Schedule(std::uint32_t seed, std::uint64_t samples);
  const std::vector<std::string>& hosts() const { return hosts_; }
  // For the job's options; the schedule must outlive the job.
  FateOf fate_of();
  void act(SimJob& job);

 private:
  void disturb(SimJob& job);
  void add(SimJob& job);
  void add_doomed(SimJob& job);
  void remove(SimJob& job);
  void replace(SimJob& job);
  void doom_member(SimJob& job, Fate fate);
  void kill_members(SimJob& job, std::uint32_t count);
  elastic::WorkerId any_member(SimJob& job);
  std::string unused_host();

  RandomStream random_;
  Dooms dooms_;
  std::vector<std::uint64_t> when_;  // samples seen, the next one last
  std::vector<std::string> hosts_;
  int named_ = 0;
};

}  // namespace dtrain::world
