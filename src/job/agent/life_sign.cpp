#include "life_sign.hpp"

#include <unistd.h>

#include <ctime>
#include <utility>

#include <dtrain/base/cache_folder.hpp>
#include <dtrain/base/error.hpp>
#include <dtrain/base/hash.hpp>
#include <dtrain/base/machine.hpp>
#include <dtrain/base/process.hpp>

#include "waiting_name.hpp"

namespace dtrain::job {
namespace {

constexpr std::size_t kNameLength = 16;

// Processes of this user that wait in different folders may have the same name.
std::optional<launcher::WaitingFolder> files_of(const JobFolder& folder) try {
  const std::string path = std::filesystem::absolute(folder.path).lexically_normal().string();
  return launcher::WaitingFolder(user_cache_folder() / "hosts" / sha256_hex(bytes_of(path)).substr(0, kNameLength));
} catch (const std::exception&) {
  return std::nullopt;
}

}  // namespace

std::int64_t seconds_since_1970() { return static_cast<std::int64_t>(::time(nullptr)); }

launcher::WaitingHost own_sign(const std::string& host, launcher::WaitingState state) {
  return {host, state, ::getpid(), seconds_since_1970(), process_identity(::getpid()), host_name()};
}

LifeSign::LifeSign(const JobFolder& folder, std::string host)
    : files_(files_of(folder)),
      host_(std::move(host)),
      thread_([this](const std::stop_token& stop) { renew_until(stop); }) {}

LifeSign::~LifeSign() {
  thread_.request_stop();
  thread_.join();
  if (files_) forget_own(*files_, host_);
}

void LifeSign::show(launcher::WaitingState state) {
  const MutexLock lock(mutex_);
  moved_ = std::chrono::steady_clock::now();
  state_ = state;
  write();
}

void LifeSign::move() {
  const MutexLock lock(mutex_);
  moved_ = std::chrono::steady_clock::now();
}

void LifeSign::renew_until(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    {
      const MutexLock lock(mutex_);
      if (std::chrono::steady_clock::now() - moved_ < kLongestStandstill) write();
    }
    sleep_unless_stopped(stop, launcher::kRenewInterval);
  }
}

void LifeSign::write() try {
  if (files_) files_->renew(own_sign(host_, state_));
} catch (const Error&) {  // the file of the shared folder is there as well
}

std::optional<launcher::WaitingHost> life_sign_of(const JobFolder& folder, const std::string& host) {
  const auto files = files_of(folder);
  const auto found = files ? files->find(host) : std::nullopt;
  return found && seconds_since_1970() - found->time <= kSilence.count() ? found : std::nullopt;
}

}  // namespace dtrain::job
