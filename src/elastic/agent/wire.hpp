// Frames between an agent and the coordinator: a tag, the worker they are about (u64 little-endian, 0: none), a body.
// What a worker and the coordinator say to each other is carried as it is.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <dtrain/elastic/crew.hpp>

namespace dtrain::elastic {

enum class Tag : char {
  join = 'j',     // agent, its first frame: JSON of Joined
  welcome = 'w',  // coordinator, its answer: JSON of Welcome
  start = 's',    // coordinator: the slot, in decimal
  kill = 'k',     // coordinator: "dump" or nothing
  end = 'e',      // coordinator: the agent ends, after all of its workers
  say = '>',      // either way: a message of elastic/protocol.hpp
  output = 'o',   // agent: whole lines of what a worker printed
  exited = 'x',   // agent: JSON of Exited
};

struct AgentFrame {
  Tag tag = Tag::say;
  WorkerId worker = 0;
  std::string body;
};
std::string encode(Tag tag, WorkerId worker, std::string_view body);
AgentFrame decode(std::string frame);  // throws DataError

struct Joined {
  std::string host;
  std::string tree;  // AgentJoin::tree: an agent of an earlier start is refused
};
struct Welcome {
  std::vector<std::string> environment;  // any bytes
  std::string folder;
  Json document;
  bool forward_output = false;
};
struct Exited {
  int exit_code = 0;
  int signal = 0;
  std::vector<std::string> last_lines;
};
Json to_json(const Joined& joined);
Json to_json(const Welcome& welcome);
Json to_json(const Exited& exited);
// Throw DataError.
Joined joined_from_json(const Json& json);
Welcome welcome_from_json(const Json& json);
Exited exited_from_json(const Json& json);

}  // namespace dtrain::elastic
