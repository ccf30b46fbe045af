// The life of a process that waits in a job folder, as a file in this user's cache folder. Probes and `hosts leave`
// read it, so that they need no answer of the shared folder, which may hang for minutes at all hosts at once.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

#include <dtrain/base/mutex.hpp>
#include <dtrain/launcher/waiting_folder.hpp>

#include "job/spec/job_folder.hpp"

namespace dtrain::job {

// A process whose main thread has not moved for so long hangs for good, whatever its folder does.
inline constexpr std::chrono::minutes kLongestStandstill{10};
// A file that was not renewed for so long belongs to a process that hangs or is gone.
inline constexpr std::chrono::seconds kSilence{30};

// The main thread calls show() and move(). A thread renews the file, because the main thread may be held up by the
// shared folder, until that has not moved for kLongestStandstill. The mutex guards what is written, and keeps both from
// writing at once. The thread ends with the object, which then removes the file. A file that cannot be written is none:
// readers then look into the shared folder.
class LifeSign {
 public:
  LifeSign(const JobFolder& folder, std::string host);
  ~LifeSign();
  LifeSign(const LifeSign&) = delete;

  void show(launcher::WaitingState state) DTRAIN_EXCLUDES(mutex_);
  void move() DTRAIN_EXCLUDES(mutex_);

 private:
  void renew_until(const std::stop_token& stop) DTRAIN_EXCLUDES(mutex_);
  void write() DTRAIN_REQUIRES(mutex_);

  const std::optional<launcher::WaitingFolder> files_;
  const std::string host_;
  Mutex mutex_;
  launcher::WaitingState state_ DTRAIN_GUARDED_BY(mutex_) = launcher::WaitingState::waiting;
  std::chrono::steady_clock::time_point moved_ DTRAIN_GUARDED_BY(mutex_) = std::chrono::steady_clock::now();
  std::jthread thread_;
};

// What this process shows under this name.
launcher::WaitingHost own_sign(const std::string& host, launcher::WaitingState state);

// What the process that waits there under this name on this machine shows; nullopt: nothing within kSilence.
std::optional<launcher::WaitingHost> life_sign_of(const JobFolder& folder, const std::string& host);

std::int64_t seconds_since_1970();

}  // namespace dtrain::job
