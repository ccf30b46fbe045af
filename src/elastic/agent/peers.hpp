// How agents talk to each other: one question, one answer, a connection each.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include <dtrain/elastic/circle.hpp>

#include "election/elect.hpp"
#include "errands.hpp"

namespace dtrain::elastic {

class Peers {
 public:
  struct Events {
    std::function<Vote(const PromiseAsked&)> on_promise_asked;
    std::function<void(const Leader&)> on_leader;  // the sender says where the new coordinator is
  };
  // Listens at once; borrows the loop. Everything happens on its thread.
  Peers(net::Loop& loop, Errands& errands, const std::string& bind_address, const std::string& token, Events events);
  std::uint16_t port() const { return listener_.port(); }

  // `then`: the vote, or nullopt when none came in time.
  void ask_promise(const CircleAgent& whom, const PromiseAsked& question,
                   std::function<void(std::optional<Vote>)> then);
  void tell_leader(const CircleAgent& whom, const Leader& leader);

 private:
  void ask(const CircleAgent& whom, const std::string& text, std::function<void(std::optional<std::string>)> then);
  void receive(std::shared_ptr<net::Channel> channel);
  std::string answer(const std::string& text) const;

  net::Loop& loop_;
  Errands& errands_;
  const std::string token_;
  const Events events_;
  net::Listener listener_;
};

}  // namespace dtrain::elastic
