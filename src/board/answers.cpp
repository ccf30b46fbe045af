#include "answers.hpp"

#include <fmt/format.h>

#include <chrono>
#include <functional>
#include <map>

#include "data_answers.hpp"
#include "evaluation_answers.hpp"
#include "job_answers.hpp"
#include "job_view.hpp"
#include "log_answers.hpp"
#include "machines.hpp"
#include "model_answers.hpp"
#include "reply.hpp"
#include "run_answers.hpp"

namespace dtrain::board {
namespace {

// One question with all that its answer needs.
struct Question {
  const Catalog& catalog;
  const BoardFacts& facts;
  const net::HttpRequest& request;
  const Target& target;

  template <typename Use>
  net::HttpResponse of_run(const Use& use) const {
    net::HttpResponse response;
    const std::string id = target.text("run");
    if (!catalog.with_run(id, [&](const Run& run) { response = use(run); })) gone();
    return response;
  }
  [[noreturn]] static void gone() {
    throw Missing("this run is not there any more",
                  "its folder was removed or renamed; the table has the runs that are");
  }
  // The folder, for answers that read files for long and must not keep the catalog waiting.
  std::string folder() const {
    std::string folder;
    of_run([&](const Run& run) {
      folder = run.folder();
      return net::HttpResponse();
    });
    return folder;
  }
  RunPlace place() const {
    RunPlace place;
    of_run([&](const Run& run) {
      place = {run.folder(), run.settings()};
      return net::HttpResponse();
    });
    return place;
  }
  // On this machine those below the root, whose links are not followed. Of objects the run's folder alone is listed.
  std::unique_ptr<Files> files() const {
    const std::string id = target.text("run"), folder = this->folder(), root = catalog.root_of(id);
    if (root.empty()) gone();
    auto files = open_files(net::is_s3_url(folder) ? folder : root, facts.store);
    if (!files->is_local()) files->find_runs();  // lists it
    return files;
  }
};

net::HttpResponse board(const Question& question) {
  Json folders = Json::array();
  for (const std::string& folder : question.facts.folders) folders.push_back(folder);
  return reply(Json::object({{"schema", "dtrain.board/1"},
                             {"version", DTRAIN_VERSION},
                             {"machine", question.facts.title},
                             {"folders", folders},
                             {"may_act", question.facts.may_act},
                             {"now", wall_seconds()},
                             {"rows", question.catalog.rows()}}));
}

net::HttpResponse job(const Question& question) {
  std::vector<Json> events, journal;
  question.of_run([&](const Run& run) {
    events = run.events();
    journal = run.journal();
    return net::HttpResponse();
  });
  return reply(job_view(events, journal, question.catalog.end_of(question.target.text("run"), wall_seconds())));
}

net::HttpResponse evaluation(const Question& question) {
  Json answer;
  question.of_run([&](const Run& run) {
    answer = validations_of(run);
    return net::HttpResponse();
  });
  add_report(answer, question.place(), question.target);
  return reply(answer);
}

// What a run does not have yet is an answer, {"missing", "hint"}, and no error: the page asks for it again.
template <typename Ask>
Json or_missing(const Ask& ask) {
  try {
    return ask();
  } catch (const Missing& error) {
    return Json::object({{"missing", error.what()}, {"hint", error.hint()}});
  }
}

using Answer = net::HttpResponse (*)(const Question&);

const std::map<std::string_view, Answer>& known_answers() {
  static const std::map<std::string_view, Answer> all = {
      {"/api/board", board},
      {"/api/job", job},
      {"/api/series",
       [](const Question& q) {
         std::optional<Series> series;
         q.of_run([&](const Run& run) {
           series.emplace(run, q.target);
           return net::HttpResponse();
         });
         return series->answer(*q.files());
       }},
      {"/api/events",
       [](const Question& q) { return q.of_run([&](const Run& run) { return reply(events_of(run, q.target)); }); }},
      {"/api/plot",
       [](const Question& q) {
         std::string name;
         std::vector<Json> events;
         q.of_run([&](const Run& run) {
           name = run.name();
           events = run.events();
           return net::HttpResponse();
         });
         return picture_of(q.folder(), name, events, *q.files(), q.target);
       }},
      {"/api/logs", [](const Question& q) { return reply(logs_of(*q.files(), q.folder())); }},
      {"/api/log", [](const Question& q) { return reply(log_of(*q.files(), q.folder(), q.target)); }},
      {"/api/live", [](const Question& q) { return reply(live_hosts(q.folder())); }},
      {"/api/model",
       [](const Question& q) { return reply(or_missing([&, run = q.place()] { return model_of(run, q.target); })); }},
      {"/api/bytes", [](const Question& q) { return reply(step_bytes_of(q.place())); }},
      {"/api/spread", [](const Question& q) { return reply(spread_of(q.place(), q.target)); }},
      {"/api/data", [](const Question& q) { return reply(or_missing([run = q.place()] { return data_of(run); })); }},
      {"/api/sheet", [](const Question& q) { return sheet_of(q.place()); }},
      {"/api/evaluation", evaluation},
      {"/api/clusters",
       [](const Question& q) {
         return reply(q.facts.clusters ? q.facts.clusters->json() : Json::object({{"clusters", Json::array()}}));
       }},
      {"/api/curves", [](const Question& q) { return reply(curves_of_report(q.place(), q.target)); }},
      {"/api/report", [](const Question& q) { return picture_of_report(q.place(), q.target); }},
      {"/api/machines", [](const Question& q) { return reply(machines_of(q.catalog)); }},
      {"/api/ledger",
       [](const Question& q) {
         const RunPlace run = q.place();
         return reply(ledger_check(run.folder, run.settings));
       }},
  };
  return all;
}

}  // namespace

net::HttpResponse Answers::answer(const net::HttpRequest& request, const Target& target) const {
  try {
    return find_answer(request, target);
  } catch (const Missing& error) {
    return refuse(404, error.what(), error.hint());
  } catch (const UsageError& error) {
    return refuse(400, error.what(), error.hint());
  } catch (const Error& error) {
    return refuse(500, error.what(), error.hint());
  } catch (const std::exception& error) {
    return refuse(500, error.what());
  }
}

net::HttpResponse Answers::find_answer(const net::HttpRequest& request, const Target& target) const {
  const Question question{catalog_, facts_, request, target};
  if (target.path == "/api/action") {
    if (request.method != "POST") return refuse(405, "an action is a POST");
    if (!facts_.may_act)
      return refuse(403, "this board only shows", "it acts where it was started with the option allow-actions");
    return reply(act_on_job(question.folder(), request.body));
  }
  const auto found = known_answers().find(target.path);
  if (found == known_answers().end()) return refuse(404, fmt::format("{}: no such question", target.path));
  if (request.method != "GET") return refuse(405, "a question is a GET");
  return found->second(question);
}

}  // namespace dtrain::board
