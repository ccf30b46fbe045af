// Frames between an agent and the coordinator: a tag, the worker they are about (u64 little-endian, 0: none), a body.
// What a worker and the coordinator say to each other is carried as it is.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <dtrain/elastic/circle.hpp>
#include <dtrain/elastic/crew.hpp>

namespace dtrain::elastic {

enum class Tag : char {
  join = 'j',     // agent, its first frame: JSON of Joined
  welcome = 'w',  // coordinator, its answer: JSON of Welcome
  gate = 'g',     // coordinator: JSON of GateOptions
  gated = 'G',    // agent, its answer: JSON of GateResult
  notice = 'N',   // agent: JSON of a HostNotice, without the host
  start = 's',    // coordinator: the slot, in decimal
  kill = 'k',     // coordinator: "dump" or nothing
  end = 'e',      // coordinator: the agent ends, after all of its workers
  say = '>',      // either way: a message of elastic/protocol.hpp
  output = 'o',   // agent: whole lines of what a worker printed
  exited = 'x',   // agent: JSON of Exited
  alive = 'a',    // coordinator: a sign of life, "BEAT FRAMES": how many say and exited frames came from this agent
                  // agent, its answer: "BEAT"
  circle = 'c',   // coordinator: JSON of CircleNotice
  known = 'n',    // agent, its answer: the generation, in decimal
  deposed = 'd',  // agent, its last frame: the higher term that it obeys, in decimal
};

struct AgentFrame {
  Tag tag = Tag::say;
  WorkerId worker = 0;
  std::string body;
};
std::string encode(Tag tag, WorkerId worker, std::string_view body);
AgentFrame decode(std::string frame);  // throws DataError
// What an agent's frame says of its host; nullopt: it is about something else. Throws DataError.
std::optional<CrewEvent> event_of_host(const std::string& host, const AgentFrame& frame);
std::uint64_t number_of(std::string_view text);  // in decimal; throws DataError

struct Joined {
  std::string host;
  std::string tree;        // AgentJoin::tree: an agent of an earlier start is refused
  Term term = 0;           // the newest coordinator that it followed; 0: this is the first one
  std::uint16_t port = 0;  // where other agents reach it, at the address of this connection
  Circles circles{};       // these two are for a coordinator that took over
  std::vector<WorkerReport> workers{};
};
struct Welcome {
  std::vector<std::string> environment;  // any bytes
  bool keep_own = false;                 // the agent's own environment stays, below that
  std::string folder;
  Json document;
  bool forward_output = false;
  Term term = 0;
  bool outlive = false;                  // keep the workers when the coordinator is lost, and find another
  std::chrono::milliseconds silence{};   // of a coordinator that is lost; 0: only a closed connection counts
  std::chrono::milliseconds patience{};  // without a coordinator
  std::vector<WorkerId> keep{};          // of the workers in Joined; the others end
  std::string notice_url{};              // see notice_url_of()
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
