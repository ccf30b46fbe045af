#include "agent_link.hpp"

#include <chrono>
#include <utility>

#include <dtrain/base/error.hpp>

namespace dtrain::job {
namespace {

using namespace std::chrono_literals;
constexpr auto kAssignmentPatience = 30s;
constexpr auto kFarewellPatience = 5s;
constexpr auto kLoanPatience = 90s;  // the coordinator may run a credential_process for a minute

}  // namespace

AgentLink::AgentLink(FileDescriptor socket) : channel_(net::adopt_channel(thread_.loop(), std::move(socket))) {
  channel_->listen({.on_frame = [this](std::string frame) { on_frame(std::move(frame)); },
                    .on_close = [this](const std::string& reason) { on_close(reason); }});
}

AgentLink::~AgentLink() { thread_.stop(); }

bool AgentLink::wait_until(bool (AgentLink::*done)() const, std::chrono::milliseconds patience) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, patience, [&] { return (this->*done)(); });
}

Json AgentLink::assignment() {
  wait_until(&AgentLink::has_assignment, kAssignmentPatience);
  std::lock_guard lock(mutex_);
  if (frames_.empty()) throw RemoteError("the agent did not say what to do", "workers are started by `dtrain train`");
  const std::string first = std::move(frames_.front());
  frames_.erase(frames_.begin());
  return Json::parse(first, "the agent's first message");
}

void AgentLink::connect(elastic::WorkerSession& session) {
  std::unique_lock lock(mutex_);
  session_ = &session;
  const std::vector<std::string> early = std::exchange(frames_, {});
  const bool closed = closed_;
  lock.unlock();
  for (const std::string& frame : early) deliver(frame);
  if (closed) session.on_control_lost(close_reason_);
}

void AgentLink::send(const elastic::FromWorker& message) { channel_->send(elastic::to_json(message).dump()); }

void AgentLink::finish() {
  channel_->close_after_sending();
  wait_until(&AgentLink::is_closed, kFarewellPatience);
  thread_.stop();
}

void AgentLink::on_frame(std::string frame) {
  std::unique_lock lock(mutex_);
  if (!session_) {
    frames_.push_back(std::move(frame));
    changed_.notify_all();
    return;
  }
  lock.unlock();
  deliver(frame);
}

void AgentLink::deliver(const std::string& frame) {
  const elastic::ToWorker message = elastic::to_worker_from_json(Json::parse(frame, "a message of the coordinator"));
  if (const auto* loan = std::get_if<elastic::Lend>(&message)) return take(*loan);
  session_->on_message(message);
}

void AgentLink::take(const elastic::Lend& loan) {
  if (!loan.credentials.empty()) lent_->take(net::credentials_from(loan.credentials, "coordinator"));
  const std::lock_guard lock(mutex_);
  heard_of_loan_ = true;
  changed_.notify_all();
}

bool AgentLink::wait_for_loan() { return wait_until(&AgentLink::heard_of_loan, kLoanPatience); }

void AgentLink::on_close(const std::string& reason) {
  std::unique_lock lock(mutex_);
  closed_ = true;
  close_reason_ = reason;
  changed_.notify_all();
  elastic::WorkerSession* session = session_;
  lock.unlock();
  if (session) session->on_control_lost(reason);
}

}  // namespace dtrain::job
