# Tests of CTest that run under streamsan: a test that races fails with code 66, as one that fails by
# itself does with its own.
#
#     list(APPEND CMAKE_MODULE_PATH ...)     # where this file lies
#     include(StreamsanTest)
#
#     streamsan_add_test(NAME pipeline COMMAND pipeline --size 64)
#     streamsan_discover_tests(units)        # each test of a GoogleTest program by itself
#
# For CMake 3.22 and later. What can be set when a project is configured:
#
#     STREAMSAN            OFF makes both functions plain add_test and gtest_discover_tests
#     STREAMSAN_COMMAND    the command; looked for in PATH
#     STREAMSAN_OPTIONS    further options of `streamsan run` for all tests, such as --sim
#     STREAMSAN_OUTPUT     the directory of traces and reports; streamsan/ in the build directory
#
# What a test leaves there has the test's name: NAME.db, the trace, and a report for each of REPORTS.
# `streamsan check ${STREAMSAN_OUTPUT}` makes one report of all tests. A name with characters that a
# file should not have gets others and a part of its hash.
#
# A failure of streamsan itself is code 125 and fails the test: nothing was looked at. No code means a
# skipped test, unless SKIP_WITHOUT_CUDA asks for it or the program's own SKIP_RETURN_CODE is set,
# which stays what it is.
include_guard(GLOBAL)

option(STREAMSAN "Run the tests under streamsan" ON)
set(STREAMSAN_OPTIONS "" CACHE STRING "Further options of `streamsan run` for all tests")
set(STREAMSAN_OUTPUT "${CMAKE_BINARY_DIR}/streamsan" CACHE PATH "Where traces and reports go")
if(STREAMSAN)
  find_program(STREAMSAN_COMMAND streamsan DOC "The command streamsan")
  if(NOT STREAMSAN_COMMAND)
    message(FATAL_ERROR "The command streamsan is not in PATH. Name it with "
      "-DSTREAMSAN_COMMAND=/path/to/streamsan, or run the tests without it: -DSTREAMSAN=OFF.")
  endif()
endif()
set(_STREAMSAN_NAMES "${CMAKE_CURRENT_LIST_DIR}/StreamsanTestNames.cmake")
include("${_STREAMSAN_NAMES}")

# The words before a test program whose files are called so.
function(_streamsan_launcher variable file)
  set(words "${STREAMSAN_COMMAND}" run -o "${STREAMSAN_OUTPUT}/${file}.db")
  foreach(form IN LISTS _streamsan_REPORTS)
    set(ending "${form}")
    if(form STREQUAL "junit")
      set(ending "xml")
    endif()
    list(APPEND words --report "${form}=${STREAMSAN_OUTPUT}/${file}.${ending}")
  endforeach()
  if(_streamsan_SKIP_WITHOUT_CUDA)
    list(APPEND words --require-cuda)
  endif()
  list(APPEND words ${STREAMSAN_OPTIONS} ${_streamsan_OPTIONS} --)
  set(${variable} "${words}" PARENT_SCOPE)
endfunction()

# streamsan_add_test(NAME name COMMAND command [argument...]
#   [WORKING_DIRECTORY directory] [LABELS label...]
#   [OPTIONS option...] [REPORTS form...] [SKIP_WITHOUT_CUDA])
#
# As add_test. The test has the label `streamsan` beside its own.
#   OPTIONS              further options of `streamsan run`
#   REPORTS              junit, sarif, json, html, text
#   SKIP_WITHOUT_CUDA    a test that makes no call of the driver is skipped, not passed
function(streamsan_add_test)
  cmake_parse_arguments(PARSE_ARGV 0 _streamsan
    "SKIP_WITHOUT_CUDA" "NAME;WORKING_DIRECTORY" "COMMAND;LABELS;OPTIONS;REPORTS")
  if(_streamsan_UNPARSED_ARGUMENTS OR NOT _streamsan_NAME OR NOT _streamsan_COMMAND)
    message(FATAL_ERROR "streamsan_add_test takes NAME and COMMAND, and does not understand "
      "'${_streamsan_UNPARSED_ARGUMENTS}'")
  endif()
  set(directory)
  if(_streamsan_WORKING_DIRECTORY)
    set(directory WORKING_DIRECTORY "${_streamsan_WORKING_DIRECTORY}")
  endif()
  if(NOT STREAMSAN)
    add_test(NAME "${_streamsan_NAME}" COMMAND ${_streamsan_COMMAND} ${directory})
    set_tests_properties("${_streamsan_NAME}" PROPERTIES LABELS "${_streamsan_LABELS}")
    return()
  endif()
  list(POP_FRONT _streamsan_COMMAND program)
  if(TARGET "${program}")
    set(program "$<TARGET_FILE:${program}>")
  endif()
  streamsan_file_name(file "${_streamsan_NAME}")
  _streamsan_launcher(launcher "${file}")
  add_test(NAME "${_streamsan_NAME}" COMMAND ${launcher} "${program}" ${_streamsan_COMMAND} ${directory})
  set_tests_properties("${_streamsan_NAME}" PROPERTIES LABELS "streamsan;${_streamsan_LABELS}")
  if(_streamsan_SKIP_WITHOUT_CUDA)
    set_tests_properties("${_streamsan_NAME}" PROPERTIES SKIP_RETURN_CODE 4)
  endif()
endfunction()

# streamsan_discover_tests(target [LABELS label...] [OPTIONS option...] [REPORTS form...]
#   [SKIP_WITHOUT_CUDA] [argument of gtest_discover_tests...])
#
# As gtest_discover_tests: each test of the program runs by itself and has a trace of its own. Of the
# target, all tests run under streamsan from then on.
function(streamsan_discover_tests target)
  cmake_parse_arguments(PARSE_ARGV 1 _streamsan
    "SKIP_WITHOUT_CUDA" "TEST_LIST" "LABELS;OPTIONS;REPORTS;PROPERTIES")
  include(GoogleTest)
  set(tests "${_streamsan_TEST_LIST}")
  if(NOT tests)
    set(tests "${target}_TESTS")
  endif()
  set(labels ${_streamsan_LABELS})
  if(STREAMSAN)
    list(PREPEND labels streamsan)
    _streamsan_launcher(launcher "%q{STREAMSAN_TEST}")
    if(CMAKE_VERSION VERSION_LESS 3.29)
      set_property(TARGET "${target}" PROPERTY CROSSCOMPILING_EMULATOR "${launcher}")
    else()
      set_property(TARGET "${target}" PROPERTY TEST_LAUNCHER "${launcher}")
    endif()
    if(_streamsan_SKIP_WITHOUT_CUDA)
      list(APPEND _streamsan_PROPERTIES SKIP_RETURN_CODE 4)
    endif()
  endif()
  set(properties)
  if(_streamsan_PROPERTIES)
    set(properties PROPERTIES ${_streamsan_PROPERTIES})
  endif()
  gtest_discover_tests("${target}" TEST_LIST "${tests}" ${_streamsan_UNPARSED_ARGUMENTS} ${properties})
  # Read by ctest behind the file that lists the tests: gives each the name of its files, and labels,
  # of which CMake's own function takes one only.
  set(file "${CMAKE_CURRENT_BINARY_DIR}/${target}_streamsan_tests.cmake")
  file(WRITE "${file}" "include([==[${_STREAMSAN_NAMES}]==])\n"
    "streamsan_name_tests([==[${tests}]==] [==[${labels}]==])\n")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES "${file}")
endfunction()
