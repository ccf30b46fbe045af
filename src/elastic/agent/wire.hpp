// Frames between an agent and the coordinator: a tag, the worker concerned (u64 little-endian, 0: none), a body.
// Messages between a worker and the coordinator pass through unchanged.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <dtrain/base/error.hpp>
#include <dtrain/elastic/agent_pool.hpp>
#include <dtrain/elastic/voters.hpp>

namespace dtrain::elastic {

// Each tag, its byte, its sender, and the body.
#define DTRAIN_FRAME_TAGS(tag)                                                                                       \
  tag(join, 'j')        /* agent, its first frame: JSON of JoinRequest */                                            \
      tag(welcome, 'w') /* coordinator, its answer: JSON of Welcome */                                               \
      tag(check, 'g')   /* coordinator: JSON of AdmissionCheckOptions */                                             \
      tag(checked, 'G') /* agent, its answer: JSON of AdmissionCheckResult */                                        \
      tag(notice, 'N')  /* agent: JSON of a HostNotice, without the host */                                          \
      tag(start, 's')   /* coordinator: the slot, in decimal */                                                      \
      tag(kill, 'k')    /* coordinator: "dump" or nothing */                                                         \
      tag(end, 'e')     /* coordinator: the agent ends, after all of its workers */                                  \
      tag(say, '>')     /* either way: a message of elastic/protocol.hpp */                                          \
      tag(output, 'o')  /* agent: whole lines of a worker's stdout */                                                \
      tag(error, 'O')   /* agent: whole lines of its stderr */                                                       \
      tag(exited, 'x')  /* agent: JSON of Exited */                                                                  \
      tag(alive, 'a')   /* coordinator: "BEAT FRAMES", the number of say and exited from the agent; agent: "BEAT" */ \
      tag(voters, 'c')  /* coordinator: JSON of VoterNotice */                                                       \
      tag(known, 'n')   /* agent, its answer: the generation, in decimal */                                          \
      tag(stale_term, 'd') /* agent, its last frame: the higher term that it obeys, in decimal */

#define DTRAIN_FRAME_TAG(name, byte) name = byte,
enum class Tag : char { DTRAIN_FRAME_TAGS(DTRAIN_FRAME_TAG) };
#undef DTRAIN_FRAME_TAG

struct AgentFrame {
  Tag tag = Tag::say;
  WorkerId worker = 0;
  std::string body;
};
std::string encode(Tag tag, WorkerId worker, std::string_view body);
AgentFrame decode(std::string frame);  // throws DataError
// The other end sent what cannot be read. A DataError of another class is this process's own failure.
class InvalidFrame : public DataError {
 public:
  using DataError::DataError;
};
// Returns read(), which only reads a frame. Throws InvalidFrame in place of its DataError.
template <typename Read>
auto read_frame(const Read& read) {
  try {
    return read();
  } catch (const DataError& error) {
    throw InvalidFrame(error.what(), error.hint());
  }
}
// The event that an agent's frame reports about its host; nullopt: the frame is about something else. Throws DataError.
std::optional<AgentPoolEvent> event_of_host(const std::string& host, const AgentFrame& frame);
std::uint64_t number_of(std::string_view text);  // in decimal; throws DataError

struct JoinRequest {
  std::string host;
  std::string tree;        // AgentOrder::tree: an agent of an earlier start is refused
  Term term = 0;           // newest coordinator that it followed; 0: none before
  std::uint16_t port = 0;  // where other agents reach it, at the address of this connection
  KnownVoters voters{};    // this and the next are for a coordinator that takes over
  std::vector<WorkerReport> workers{};
};
struct Welcome {
  std::vector<std::string> environment;  // any bytes
  bool keep_own = false;                 // add them to the agent's own environment
  std::string folder;
  Json document;
  bool forward_output = false;
  Term term = 0;
  bool outlive = false;                  // keep the workers when the coordinator is lost, and find another
  std::chrono::milliseconds silence{};   // after which a coordinator is lost; 0: only a closed connection counts
  std::chrono::milliseconds patience{};  // without a coordinator, before the agent ends
  std::chrono::milliseconds grace{};     // see NetworkAgentPoolOptions
  std::vector<WorkerId> keep{};          // workers of the JoinRequest that continue; the others end
  std::string notice_url{};              // see notice_url_of()
};
struct Exited {
  int exit_code = 0;
  int signal = 0;
  std::vector<std::string> last_lines;
  bool started = true;  // false: there was no process; the lines say why
};
Json to_json(const JoinRequest& request);
Json to_json(const Welcome& welcome);
Json to_json(const Exited& exited);
// These throw DataError.
JoinRequest join_request_from_json(const Json& json);
Welcome welcome_from_json(const Json& json);
Exited exited_from_json(const Json& json);

}  // namespace dtrain::elastic
