#include "export_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>

#include <dtrain/base/base64.hpp>
#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>

#include "answers.hpp"
#include "job/spec/process_facts.hpp"
#include "page.hpp"

namespace dtrain::board {
namespace {

constexpr std::string_view kMark = "<!-- dtrain board -->";
// In the order in which they use each other; app.js starts the page.
constexpr std::array kModules = {"dom.js",   "format.js", "api.js",        "chart.js",    "download.js", "window.js",
                                 "runs.js",  "run.js",    "job.js",        "timeline.js", "logs.js",     "graph.js",
                                 "model.js", "data.js",   "evaluation.js", "cluster.js",  "app.js"};
constexpr std::array kPointsOfExport = {"steps", "epochs", "time"};

std::string_view file_of_page(std::string_view name) {
  const auto files = page_files();
  const auto file = std::ranges::find(files, name, &PageFile::name);
  DTRAIN_CHECK(file != files.end(), "a file of the page is missing");
  return file->text;
}

// Inside a script element, where neither an end tag nor a comment may stand.
std::string script_safe(std::string text) {
  for (std::size_t at = text.find('<'); at != text.npos; at = text.find('<', at + 1)) text.replace(at, 1, "\\u003c");
  return text;
}

// The answers that the page will ask for, by address.
class Recording {
 public:
  Recording(const Answers& answers) : answers_(answers) {}
  // The answer; empty: it was refused.
  std::string ask(const std::string& address) {
    const net::HttpResponse response = answer(address);
    if (response.status != 200) return {};
    add(address, response.body);
    return response.body;
  }
  void ask_picture(const std::string& address) {
    const net::HttpResponse response = answer(address);
    if (response.status != 200) return;
    add(address, Json(fmt::format("data:{};base64,{}", response.type, base64(response.body))).dump());
  }
  std::string json() const { return "{" + text_ + "}"; }

 private:
  net::HttpResponse answer(const std::string& address) const {
    return answers_.answer({.method = "GET", .path = address}, *parse_target(address));
  }
  void add(const std::string& address, const std::string& json) {
    text_ += fmt::format("{}{}:{}", text_.empty() ? "" : ",", Json(address).dump(), json);
  }

  const Answers& answers_;
  std::string text_;
};

// As URLSearchParams of the page writes it.
std::string form_word(std::string_view text) {
  std::string word;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (plain || std::string_view("*-._").find(c) != std::string_view::npos) {
      word += c;
    } else {
      word += c == ' ' ? "+" : fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return word;
}

// The evaluation with the pictures of the report that it shows.
void record_evaluation(Recording& recording, const std::string& id) {
  const std::string body = recording.ask(fmt::format("/api/evaluation?run={}", id));
  if (body.empty()) return;
  const Json evaluation = Json::parse(body, "the evaluation");
  const Json* const pictures = evaluation.find("pictures");
  if (!pictures) return;
  for (const Json& name : pictures->as_array()) {
    recording.ask_picture(fmt::format("/api/report?run={}&report={}&name={}", id,
                                      form_word(evaluation.at("report").as_string()), form_word(name.as_string())));
  }
}

std::string record(const Catalog& catalog, const std::vector<std::string>& folders,
                   const std::shared_ptr<net::ObjectStore>& store) {
  const Answers answers(catalog, {job::host_name(), folders, false, store, nullptr});
  Recording recording(answers);
  recording.ask("/api/board");
  recording.ask("/api/machines");
  for (const std::string& id : catalog.ids()) {
    for (const char* axis : kPointsOfExport) recording.ask(fmt::format("/api/series?run={}&axis={}", id, axis));
    for (const char* question : {"job", "events", "bytes", "model", "curves"})
      recording.ask(fmt::format("/api/{}?run={}", question, id));
    if (!recording.ask(fmt::format("/api/data?run={}", id)).empty())
      recording.ask_picture(fmt::format("/api/sheet?run={}", id));
    record_evaluation(recording, id);
  }
  return recording.json();
}

std::string without_element(std::string page, std::string_view begin, std::string_view end, const std::string& other) {
  const std::size_t from = page.find(begin);
  DTRAIN_CHECK(from != page.npos, "the page lacks an element");
  const std::size_t to = page.find(end, from) + end.size();
  return page.replace(from, to - from, other);
}

void refuse_to_replace(const Path& out) {
  if (!std::filesystem::exists(out)) return;
  if (read_file(out).find(kMark) != std::string::npos) return;
  throw UsageError(fmt::format("{}: is there and is no page of a board", out.string()), "name a new file");
}

}  // namespace

std::string joined_modules() {
  std::string script;
  for (const char* name : kModules) {
    bool inside = false;  // an import of several lines
    for (const std::string& line : split(file_of_page(name), '\n')) {
      if (line.starts_with("import ")) inside = true;
      if (inside) {
        if (line.ends_with(';')) inside = false;
        continue;
      }
      script += line.starts_with("export ") ? line.substr(std::string_view("export ").size()) : line;
      script += '\n';
    }
  }
  return script;
}

ExportResult export_page(const std::vector<std::string>& folders, const Path& out) {
  refuse_to_replace(out);
  const bool far = std::ranges::any_of(folders, [](const std::string& folder) { return net::is_s3_url(folder); });
  const auto store = far ? std::make_shared<net::ObjectStore>() : nullptr;
  Catalog catalog(folders, store);
  catalog.look(std::chrono::steady_clock::now(), [] { return false; });
  const std::size_t runs = catalog.ids().size();
  const std::vector<std::string> complaints = catalog.take_complaints();
  if (!complaints.empty() && far) throw RemoteError(complaints.front());
  if (!complaints.empty() && runs == 0) throw Error(complaints.front());
  if (runs == 0) {
    throw UsageError(fmt::format("{}: no run or job", join(folders, ", ")),
                     "name folders that hold the --model-prefix or the --job-dir of a training");
  }
  std::string page(file_of_page("index.html"));
  page = without_element(page, "<link rel=\"stylesheet\"", ">",
                         fmt::format("<style>{}</style>", file_of_page("board.css")));
  page = without_element(page, "<link rel=\"icon\"", ">", std::string(kMark));
  page = without_element(page, "<script", "</script>",
                         fmt::format("<script type=\"application/json\" id=\"recording\">{}</script>\n"
                                     "<script type=\"module\">\n{}</script>",
                                     script_safe(record(catalog, folders, store)), joined_modules()));
  write_file_atomic(out, page);
  return {.runs = runs, .bytes = page.size()};
}

}  // namespace dtrain::board
