// Findings as the answer of a command.
#pragma once

#include <string>
#include <vector>

#include <dtrain/base/error.hpp>
#include <dtrain/base/reporter.hpp>

#include "doctor/doctor_findings.hpp"

namespace dtrain::cli {

// A heading, and a paragraph for each finding.
void answer_findings(const std::string& heading, const std::vector<doctor::Finding>& findings, Reporter& reporter);
Json json_of(const std::vector<doctor::Finding>& findings);
bool has(const std::vector<doctor::Finding>& findings, doctor::Level level);

// How a doctor ends after its answer. Problems in an answer as JSON are an error too, as in every command that ends
// with ExitCode::failed.
ExitCode end_of_findings(bool has_problems, const Reporter& reporter);

}  // namespace dtrain::cli
