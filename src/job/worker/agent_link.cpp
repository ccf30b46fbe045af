#include "agent_link.hpp"

#include <chrono>
#include <new>
#include <utility>

#include <dtrain/base/error.hpp>

namespace dtrain::job {
namespace {

using namespace std::chrono_literals;
constexpr auto kAssignmentPatience = 30s;
constexpr auto kFarewellPatience = 5s;
constexpr auto kCredentialPatience = 90s;  // the coordinator may run a credential_process for a minute

}  // namespace

AgentLink::AgentLink(FileDescriptor socket) : channel_(net::adopt_channel(thread_.loop(), std::move(socket))) {
  channel_->listen({.on_frame = [this](std::string frame) { on_frame(std::move(frame)); },
                    .on_close = [this](const std::string& reason) { on_close(reason); }});
}

AgentLink::~AgentLink() { thread_.stop(); }

bool AgentLink::wait_until(bool (AgentLink::*done)() const, std::chrono::milliseconds patience) {
  const MutexLock lock(mutex_);
  return changed_.wait_for(mutex_, patience, [&] { return (this->*done)(); });
}

Json AgentLink::assignment() {
  wait_until(&AgentLink::has_assignment, kAssignmentPatience);
  const MutexLock lock(mutex_);
  if (frames_.empty())
    throw RemoteError("the agent sent no assignment in time",
                      "`dtrain train` starts workers itself; there is no need to run one");
  const std::string first = std::move(frames_.front());
  frames_.erase(frames_.begin());
  return Json::parse(first, "the agent's first message");
}

// The session gets frames from the loop's thread only once all earlier ones have been delivered.
void AgentLink::connect(elastic::WorkerSession& session) {
  MutexLock lock(mutex_);
  while (!frames_.empty()) {
    const std::vector<std::string> early = std::exchange(frames_, {});
    lock.unlock();
    for (const std::string& frame : early) deliver(frame, session);
    lock.lock();
  }
  session_ = &session;
  const bool closed = closed_;
  const std::string reason = close_reason_;
  lock.unlock();
  if (closed) session.on_control_lost(reason);
}

void AgentLink::send(const elastic::FromWorker& message) { channel_->send(elastic::to_json(message).dump()); }

void AgentLink::finish() {
  channel_->close_after_sending();
  wait_until(&AgentLink::is_closed, kFarewellPatience);
  thread_.stop();
}

void AgentLink::fail(elastic::WorkerSession& session, const std::exception& error, ExitCode job) {
  const bool no_memory = dynamic_cast<const std::bad_alloc*>(&error) != nullptr;
  const auto* known = dynamic_cast<const Error*>(&error);
  session.leave(elastic::Left::How::failed, no_memory ? "out of memory" : error.what(),
                {.exit_code = static_cast<int>(job), .hint = known != nullptr ? known->hint() : ""});
  finish();
}

void AgentLink::on_frame(std::string frame) {
  MutexLock lock(mutex_);
  if (!session_) {
    frames_.push_back(std::move(frame));
    changed_.notify_all();
    return;
  }
  elastic::WorkerSession& session = *session_;
  lock.unlock();
  deliver(frame, session);
}

void AgentLink::deliver(const std::string& frame, elastic::WorkerSession& session) {
  const elastic::ToWorker message = elastic::to_worker_from_json(Json::parse(frame, "a message of the coordinator"));
  if (const auto* credentials = std::get_if<elastic::UpdateCredentials>(&message)) return take(*credentials);
  if (const auto* stop = std::get_if<elastic::Stop>(&message)) note_stop(*stop);
  session.on_message(message);
}

void AgentLink::note_stop(const elastic::Stop& message) {
  const MutexLock lock(mutex_);
  stop_reason_ = message.reason;
}

std::string AgentLink::stop_reason() {
  const MutexLock lock(mutex_);
  return stop_reason_;
}

void AgentLink::take(const elastic::UpdateCredentials& message) {
  if (!message.credentials.empty()) delegated_->take(net::credentials_from(message.credentials, "coordinator"));
  const MutexLock lock(mutex_);
  heard_of_credentials_ = true;
  changed_.notify_all();
}

bool AgentLink::wait_for_credentials() { return wait_until(&AgentLink::heard_of_credentials, kCredentialPatience); }

void AgentLink::on_close(const std::string& reason) {
  MutexLock lock(mutex_);
  closed_ = true;
  close_reason_ = reason;
  changed_.notify_all();
  elastic::WorkerSession* session = session_;
  lock.unlock();
  if (session) session->on_control_lost(reason);
}

}  // namespace dtrain::job
