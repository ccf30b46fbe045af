// A table for each message lists its name and fields; writing and reading both follow it.
#include <dtrain/elastic/protocol.hpp>

#include <fmt/format.h>

#include <array>
#include <concepts>
#include <optional>
#include <tuple>
#include <utility>

#include <dtrain/base/error.hpp>
#include <dtrain/base/json_words.hpp>

namespace dtrain::elastic {
namespace {

constexpr std::array kPhases = {"building", "entering",   "loading", "computing", "reducing",
                                "applying", "evaluating", "saving",  "holding"};
constexpr std::array kBoundaries = {"now", "step", "epoch"};
constexpr std::array kHows = {"done", "removed", "stopped", "failed"};

template <typename Owner, typename Value>
struct Field {
  const char* name;
  Value Owner::*member;
};
// Clang before 17 does not deduce the arguments of an aggregate.
template <typename Owner, typename Value>
Field(const char*, Value Owner::*) -> Field<Owner, Value>;

template <typename T>
struct Table;  // kFields, and kName for a message of its own

template <>
struct Table<TrainingPosition> {
  static constexpr auto kFields =
      std::tuple(Field{"has_state", &TrainingPosition::has_state}, Field{"epoch", &TrainingPosition::epoch},
                 Field{"step", &TrainingPosition::step}, Field{"samples_seen", &TrainingPosition::samples_seen});
};
template <>
struct Table<comm::PeerAddress> {
  static constexpr auto kFields =
      std::tuple(Field{"address", &comm::PeerAddress::address}, Field{"port", &comm::PeerAddress::port});
};
template <>
struct Table<comm::Traffic> {
  static constexpr auto kFields =
      std::tuple(Field{"sent", &comm::Traffic::sent}, Field{"received", &comm::Traffic::received});
};
template <>
struct Table<Member> {
  static constexpr auto kFields = std::tuple(Field{"worker", &Member::worker}, Field{"host", &Member::host},
                                             Field{"slot", &Member::slot}, Field{"data", &Member::data});
};

template <>
struct Table<Prepare> {
  static constexpr const char* kName = "prepare";
  static constexpr auto kFields =
      std::tuple(Field{"generation", &Prepare::generation}, Field{"members", &Prepare::members});
};
template <>
struct Table<Commit> {
  static constexpr const char* kName = "commit";
  static constexpr auto kFields =
      std::tuple(Field{"generation", &Commit::generation}, Field{"boundary", &Commit::boundary});
};
template <>
struct Table<Freeze> {
  static constexpr const char* kName = "freeze";
  static constexpr auto kFields = std::tuple(Field{"generation", &Freeze::generation});
};
template <>
struct Table<Leave> {
  static constexpr const char* kName = "leave";
  static constexpr auto kFields = std::tuple(Field{"reason", &Leave::reason});
};
template <>
struct Table<Stop> {
  static constexpr const char* kName = "stop";
  static constexpr auto kFields = std::tuple(Field{"save", &Stop::save}, Field{"reason", &Stop::reason});
};

template <>
struct Table<UpdateCredentials> {
  static constexpr const char* kName = "lend";
  static constexpr auto kFields = std::tuple(Field{"credentials", &UpdateCredentials::credentials});
};

template <>
struct Table<Hello> {
  static constexpr const char* kName = "hello";
  static constexpr auto kFields =
      std::tuple(Field{"pid", &Hello::pid}, Field{"data", &Hello::data}, Field{"fingerprint", &Hello::fingerprint});
};
template <>
struct Table<Ready> {
  static constexpr const char* kName = "ready";
  static constexpr auto kFields = std::tuple(Field{"standing", &Ready::position}, Field{"probe", &Ready::probe});
};
template <>
struct Table<Meshed> {
  static constexpr const char* kName = "meshed";
  static constexpr auto kFields = std::tuple(Field{"generation", &Meshed::generation},
                                             Field{"failure", &Meshed::failure}, Field{"local", &Meshed::is_local});
};
template <>
struct Table<Frozen> {
  static constexpr const char* kName = "frozen";
  static constexpr auto kFields =
      std::tuple(Field{"generation", &Frozen::generation}, Field{"standing", &Frozen::position});
};
template <>
struct Table<Lost> {
  static constexpr const char* kName = "lost";
  static constexpr auto kFields = std::tuple(Field{"generation", &Lost::generation}, Field{"standing", &Lost::position},
                                             Field{"reason", &Lost::reason});
};
template <>
struct Table<Entered> {
  static constexpr const char* kName = "entered";
  static constexpr auto kFields =
      std::tuple(Field{"generation", &Entered::generation}, Field{"standing", &Entered::position});
};
template <>
struct Table<Progress> {
  static constexpr const char* kName = "progress";
  static constexpr auto kFields =
      std::tuple(Field{"generation", &Progress::generation}, Field{"phase", &Progress::phase},
                 Field{"standing", &Progress::position}, Field{"seconds_in_phase", &Progress::seconds_in_phase},
                 Field{"step_seconds", &Progress::step_seconds}, Field{"compute_seconds", &Progress::compute_seconds},
                 Field{"share", &Progress::share}, Field{"traffic", &Progress::traffic});
};
template <>
struct Table<Report> {
  static constexpr const char* kName = "report";
  static constexpr auto kFields = std::tuple(Field{"event", &Report::event});
};
template <>
struct Table<AskLeave> {
  static constexpr const char* kName = "ask-leave";
  static constexpr auto kFields = std::tuple(Field{"reason", &AskLeave::reason});
};
template <>
struct Table<Left> {
  static constexpr const char* kName = "left";
  static constexpr auto kFields = std::tuple(
      Field{"how", &Left::how}, Field{"reason", &Left::reason}, Field{"standing", &Left::position},
      Field{"job_exit_code", &Left::job_exit_code}, Field{"last_lines", &Left::last_lines}, Field{"hint", &Left::hint});
};

template <typename T>
concept Tabled = requires {
  Table<T>::kFields;
};

constexpr const auto& names_of(Phase) { return kPhases; }
constexpr const auto& names_of(Boundary) { return kBoundaries; }
constexpr const auto& names_of(Left::How) { return kHows; }
template <typename T>
concept Named = requires(T value) {
  names_of(value);
};

Json write(bool value) { return value; }
Json write(double value) { return value; }
Json write(const std::string& value) { return value; }
Json write(const Json& value) { return value; }
Json write(std::integral auto value) { return static_cast<std::int64_t>(value); }
Json write(Named auto value) { return names_of(value)[static_cast<std::size_t>(value)]; }
Json write(const Tabled auto& value);
Json write(const std::vector<std::string>& lines) { return words_to_json(lines); }
Json write(const std::vector<Member>& members) {
  Json list = Json::array();
  for (const Member& member : members) list.push_back(write(member));
  return list;
}

template <Tabled T>
void write_fields(const T& value, Json& json) {
  std::apply([&](const auto&... field) { ((json[field.name] = write(value.*field.member)), ...); }, Table<T>::kFields);
}
Json write(const Tabled auto& value) {
  Json json = Json::object();
  write_fields(value, json);
  return json;
}

[[noreturn]] void refuse(const std::string& why) { throw DataError("a message of the job cannot be read: " + why); }

void read(const Json& json, bool& value) { value = json.as_bool(); }
void read(const Json& json, double& value) { value = json.as_number(); }
void read(const Json& json, std::string& value) { value = json.as_string(); }
void read(const Json& json, Json& value) { value = json; }
template <std::integral T>
void read(const Json& json, T& value) {
  if (!std::in_range<T>(json.as_integer())) refuse(fmt::format("{} is out of range", json.as_integer()));
  value = static_cast<T>(json.as_integer());
}
template <Named T>
void read(const Json& json, T& value) {
  const auto& names = names_of(value);
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (json.as_string() != names[i]) continue;
    value = static_cast<T>(i);
    return;
  }
  refuse(fmt::format("\"{}\" means nothing", json.as_string()));
}
template <Tabled T>
void read(const Json& json, T& value);
void read(const Json& json, std::vector<std::string>& lines) { lines = words_from_json(json); }
void read(const Json& json, std::vector<Member>& members) {
  for (const Json& item : json.as_array()) read(item, members.emplace_back());
}
template <Tabled T>
void read(const Json& json, T& value) {
  std::apply([&](const auto&... field) { (read(json.at(field.name), value.*field.member), ...); }, Table<T>::kFields);
}

template <typename... Kinds>
Json write_message(const std::variant<Kinds...>& message) {
  return std::visit(
      []<typename T>(const T& kind) {
        Json json = Json::object({{"type", Table<T>::kName}});
        write_fields(kind, json);
        return json;
      },
      message);
}

// Reads the kind that "type" names; false when it names another.
template <typename Message, typename Kind>
bool read_kind(const Json& json, std::optional<Message>& message) {
  if (json.at("type").as_string() != Table<Kind>::kName) return false;
  Kind kind;
  read(json, kind);
  message = std::move(kind);
  return true;
}

template <typename... Kinds>
void read_message(const Json& json, std::optional<std::variant<Kinds...>>& message) {
  if (!(read_kind<std::variant<Kinds...>, Kinds>(json, message) || ...)) {
    refuse(fmt::format("there is no type \"{}\"", json.at("type").as_string()));
  }
}

template <typename Message>
Message message_from(const Json& json) {
  std::optional<Message> message;
  read_message(json, message);
  return std::move(*message);
}

}  // namespace

std::vector<std::string> hosts_of(const std::vector<Member>& members) {
  std::vector<std::string> hosts;
  for (const Member& member : members) hosts.push_back(member.host);
  return hosts;
}

const char* phase_name(Phase phase) { return kPhases[static_cast<std::size_t>(phase)]; }

Json to_json(const ToWorker& message) { return write_message(message); }
Json to_json(const FromWorker& message) { return write_message(message); }
ToWorker to_worker_from_json(const Json& json) { return message_from<ToWorker>(json); }
FromWorker from_worker_from_json(const Json& json) { return message_from<FromWorker>(json); }

}  // namespace dtrain::elastic
