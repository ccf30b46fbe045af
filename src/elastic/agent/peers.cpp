#include "peers.hpp"

#include <utility>

#include <dtrain/base/error.hpp>

namespace dtrain::elastic {
namespace {

using namespace std::chrono_literals;
constexpr auto kConnectDeadline = 1000ms;
constexpr auto kAnswerDeadline = 1000ms;
// Time for a peer to ask, and to take the answer.
constexpr auto kQuestionDeadline = 5s;

}  // namespace

Peers::Peers(net::Loop& loop, BackgroundTasks& tasks, const std::string& bind_address, const std::string& token,
             Events events)
    : loop_(loop),
      tasks_(tasks),
      token_(token),
      events_(std::move(events)),
      listener_(loop, bind_address, token,
                [this](std::shared_ptr<net::Channel> channel) { receive(std::move(channel)); }) {}

void Peers::request_vote(const Voter& whom, const VoteRequest& request, std::function<void(std::optional<Vote>)> then) {
  const Json json = Json::object({{"ask", "promise"}, {"term", request.term}, {"trial", request.pre_vote}});
  ask(whom, json.dump(), [then = std::move(then)](std::optional<std::string> answer) {
    std::optional<Vote> vote;
    try {
      if (answer) vote = vote_from_json(Json::parse(*answer, "another agent's answer"));
    } catch (const DataError&) {  // counts as no vote
    }
    then(std::move(vote));
  });
}

void Peers::send_leader(const Voter& whom, const Leader& leader) {
  ask(whom, Json::object({{"ask", "follow"}, {"leader", to_json(leader)}}).dump(), [](const auto&) {});
}

// The channel lives until the answer, its close or the deadline.
void Peers::ask(const Voter& whom, const std::string& text, std::function<void(std::optional<std::string>)> then) {
  const auto connected = [&loop = loop_, text, then](const std::shared_ptr<net::Channel>& channel) {
    if (!channel) return then(std::nullopt);
    struct Call {
      std::shared_ptr<net::Channel> channel;
      std::function<void(std::optional<std::string>)> then;
      void end(std::optional<std::string> answer) {
        const auto open = std::exchange(channel, nullptr);
        if (const auto callback = std::exchange(then, nullptr)) callback(std::move(answer));
      }
    };
    const auto call = std::make_shared<Call>(Call{channel, then});
    channel->listen({.on_frame = [call](std::string frame) { call->end(std::move(frame)); },
                     .on_close = [call](const std::string&) { call->end(std::nullopt); }});
    channel->send(text);
    loop.after(kAnswerDeadline, [call] { call->end(std::nullopt); });
  };
  tasks_.connect(whom.address.address, whom.address.port, token_, kConnectDeadline, connected);
}

void Peers::receive(std::shared_ptr<net::Channel> channel) {
  const auto held = std::make_shared<std::shared_ptr<net::Channel>>(channel);
  channel->listen({.on_frame =
                       [this, held](const std::string& frame) {
                         if (!*held) return;
                         (*held)->send(answer(frame));
                         (*held)->close_after_sending();
                         held->reset();
                       },
                   .on_close = [held](const std::string&) { held->reset(); }});
  loop_.after(kQuestionDeadline, [held] { held->reset(); });
}

std::string Peers::answer(const std::string& text) const {
  try {
    const Json json = Json::parse(text, "another agent's question");
    if (json.at("ask").as_string() == "follow") {
      events_.on_leader(leader_from_json(json.at("leader")));
      return Json::object({{"ok", true}}).dump();
    }
    const VoteRequest asked{static_cast<Term>(json.at("term").as_integer()), json.at("trial").as_bool()};
    return to_json(events_.on_vote_request(asked)).dump();
  } catch (const DataError& error) {
    return Json::object({{"error", error.what()}}).dump();
  }
}

}  // namespace dtrain::elastic
