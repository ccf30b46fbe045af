#include "findings_text.hpp"

#include <dtrain/base/with_flags.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace dtrain::cli {
namespace {

Style style_of(doctor::Level level) {
  if (level == doctor::Level::problem) return Style::error;
  return level == doctor::Level::warning ? Style::warning : Style::plain;
}

// Advice of libraries names settings.
doctor::Finding shown(doctor::Finding finding) {
  finding.fix = with_flags(finding.fix);
  return finding;
}

void answer_finding(const doctor::Finding& finding, Reporter& reporter) {
  const std::string level = fmt::format("{:<8}", enum_name(doctor::kLevelNames, finding.level));
  reporter.answer(
      fmt::format("{} {:<14} {}", reporter.paint_answer(style_of(finding.level), level), finding.about, finding.what));
  if (!finding.why.empty()) reporter.answer(fmt::format("{:24}why: {}", "", finding.why));
  if (!finding.fix.empty()) reporter.answer(fmt::format("{:24}fix: {}", "", finding.fix));
}

}  // namespace

void answer_findings(const std::string& heading, const std::vector<doctor::Finding>& findings, Reporter& reporter) {
  reporter.answer(reporter.paint_answer(Style::heading, heading));
  for (const doctor::Finding& finding : findings) answer_finding(shown(finding), reporter);
}

Json json_of(const std::vector<doctor::Finding>& findings) {
  Json rows = Json::array();
  for (const doctor::Finding& finding : findings) rows.push_back(doctor::to_json(shown(finding)));
  return rows;
}

bool has(const std::vector<doctor::Finding>& findings, doctor::Level level) {
  return std::ranges::any_of(findings, [level](const doctor::Finding& finding) { return finding.level == level; });
}

ExitCode end_of_findings(bool has_problems, const Reporter& reporter) {
  if (!has_problems) return ExitCode::ok;
  if (reporter.json()) throw Error("doctor found problems", "the findings in standard output name what fixes each");
  return ExitCode::failed;
}

}  // namespace dtrain::cli
