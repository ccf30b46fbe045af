// Requests between agents: one request and one answer for each connection. Used by the loop's thread only.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include <dtrain/elastic/voters.hpp>

#include "background_tasks.hpp"
#include "election/elect.hpp"

namespace dtrain::elastic {

class Peers {
 public:
  struct Events {
    std::function<Vote(const VoteRequest&)> on_vote_request;
    std::function<void(const Leader&)> on_leader;  // the sender says where the new coordinator is
  };
  // Listens at once. The loop and the tasks must outlive this.
  Peers(net::Loop& loop, BackgroundTasks& tasks, const std::string& bind_address, const std::string& token,
        Events events);
  std::uint16_t port() const { return listener_.port(); }

  // `then` gets the vote, or nullopt when none came in time.
  void request_vote(const Voter& whom, const VoteRequest& request, std::function<void(std::optional<Vote>)> then);
  void send_leader(const Voter& whom, const Leader& leader);

 private:
  void ask(const Voter& whom, const std::string& text, std::function<void(std::optional<std::string>)> then);
  void receive(std::shared_ptr<net::Channel> channel);
  std::string answer(const std::string& text) const;

  net::Loop& loop_;
  BackgroundTasks& tasks_;
  const std::string token_;
  const Events events_;
  net::Listener listener_;
};

}  // namespace dtrain::elastic
