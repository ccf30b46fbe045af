#include "admission_port.hpp"

#include <utility>

#include <dtrain/base/error.hpp>
#include <dtrain/cluster/admission.hpp>
#include <dtrain/cluster/user_data.hpp>

namespace dtrain::cluster {
namespace {

using namespace std::chrono_literals;
// Users of nodes can read the admission secret, so even those who know it get few places and little time.
constexpr net::ConnectionQuota::Limits kQuota{.most = 64, .most_of_address = 4, .grace = 2s};
constexpr auto kTimeToAsk = 10s;
constexpr std::uint16_t kFirstUnprivileged = 1024;

}  // namespace

AdmissionPort::AdmissionPort(net::Loop& loop, const std::string& bind_address, const std::string& secret, Answer answer)
    : loop_(loop),
      answer_(std::move(answer)),
      quota_(kQuota),
      listener_(loop, bind_address, secret, [this](const std::shared_ptr<net::Channel>& channel) { meet(channel); },
                {.port = kAdmissionPort, .purpose = kAdmissionPurpose}) {}

void AdmissionPort::meet(const std::shared_ptr<net::Channel>& channel) {
  if (channel->peer_port() >= kFirstUnprivileged) {
    return reply(*channel, Json::object({{"error", "only root of a node may ask, from a port below 1024"}}));
  }
  const auto now = std::chrono::steady_clock::now();
  if (quota_.is_full(now)) return;
  const auto decision = quota_.add(channel.get(), channel->peer_address(), now);
  open_.erase(static_cast<Key>(const_cast<void*>(decision.displaced)));
  if (!decision.admitted) return;
  open_[channel.get()] = channel;
  const Key key = channel.get();
  channel->listen({.on_frame = [this, key](const std::string& frame) { hear(key, frame); },
                   .on_close = [this, key](const std::string&) { drop(key); }});
  loop_.after(kTimeToAsk, [this, asked = std::weak_ptr(channel)] {
    if (const auto late = asked.lock()) drop(late.get());
  });
}

void AdmissionPort::hear(Key key, const std::string& frame) {
  const auto found = open_.find(key);
  if (found == open_.end()) return;
  const std::shared_ptr<net::Channel> channel = found->second;
  drop(key);
  try {
    reply(*channel, answer_(Json::parse(frame, "a request to join"), channel->peer_address()));
  } catch (const DataError& error) {
    reply(*channel, Json::object({{"error", error.what()}}));
  }
}

void AdmissionPort::reply(net::Channel& channel, const Json& answer) {
  channel.send(answer.dump());
  channel.close_after_sending();
}

void AdmissionPort::drop(Key key) {
  quota_.remove(key);
  open_.erase(key);
}

}  // namespace dtrain::cluster
