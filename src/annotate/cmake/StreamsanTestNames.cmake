# The names of the files that a test leaves. A part of StreamsanTest.cmake, for CMake and for ctest,
# which knows few of CMake's commands.

# The name of a test's files, without directory and ending.
function(streamsan_file_name variable test)
  string(REGEX REPLACE "[^A-Za-z0-9._-]" "_" file "${test}")
  if(NOT file STREQUAL test)
    string(MD5 hash "${test}")
    string(SUBSTRING "${hash}" 0 8 hash)
    string(APPEND file "-${hash}")
  endif()
  set(${variable} "${file}" PARENT_SCOPE)
endfunction()

# Tells each test of a list the name of its files, in the variable that the launcher asks for, and gives
# it labels.
function(streamsan_name_tests list labels)
  foreach(test IN LISTS ${list})
    streamsan_file_name(file "${test}")
    set_tests_properties("${test}" PROPERTIES ENVIRONMENT_MODIFICATION "STREAMSAN_TEST=set:${file}")
    if(labels)
      set_tests_properties("${test}" PROPERTIES LABELS "${labels}")
    endif()
  endforeach()
endfunction()
