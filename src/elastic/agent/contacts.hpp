// Signs of life between a coordinator and its agents, as the coordinator counts them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <dtrain/elastic/state.hpp>

namespace dtrain::elastic {

class Contacts {
 public:
  // A fresh agent never followed anybody: it has nothing to promise to another coordinator, as if it had answered.
  void add(const CircleAgent& agent, bool fresh, Time now) {
    hosts_[agent.host] = {.agent = agent, .heard = now, .answered = fresh ? now : Time{}};
  }
  void remove(const std::string& host) { hosts_.erase(host); }
  void heard(const std::string& host, Time now);

  // Of these members, those that are connected, in the order of their first member.
  std::vector<CircleAgent> agents_of(const std::vector<Member>& members) const;

  // A sign of life goes to everybody now: its number.
  std::uint64_t beat(Time now);
  // The host has answered it, so it did not promise itself to another coordinator before `beat` was sent.
  void answered(const std::string& host, std::uint64_t beat);

  // Nothing came from them for so long, this process's own standstills not counted.
  std::vector<std::string> silent(Duration limit, Time now) const;
  // Of these hosts, how many have answered a sign of life that was sent after `since`.
  std::size_t answered_since(const std::vector<std::string>& hosts, Time since) const;

 private:
  struct Host {
    CircleAgent agent{};
    Time heard{};
    Time answered{};  // when the newest beat that it answered was sent
  };
  std::map<std::string, Host> hosts_;
  std::map<std::uint64_t, Time> sent_;
  std::uint64_t next_beat_ = 1;
  Time last_beat_{}, floor_{};
};

}  // namespace dtrain::elastic
